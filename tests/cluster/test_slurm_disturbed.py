"""Jobs that Slurm takes away, and a node that goes: nothing finished is lost, nothing runs twice."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from scaleproof.core.board import Board
from scaleproof.fabric.small_clusters import SmallCluster
from tests.cluster.on_slurm import SUITE, Project, each_once
from tools.small_cluster.cluster import change, slurm_output

RANKS = 2
EDITS = {
    "# slurm_partition: compute": "slurm_partition: main",
    "# interface: ib0": "interface: eth0",
    "# set-resources:": "set-resources:",
    "#   run:": "  run:",
    "#     runtime: 60": "    runtime: 60",
}


def measuring(results: Path) -> bool:
    """Whether ranks of a launch are past their first iteration: a launch takes 5 s or more."""
    for file in (results / "staging").glob("*/launch.json"):
        with contextlib.suppress(OSError):  # a launch that ends takes its folder away
            board = Board(file.parent / "board", RANKS)
            if all(board.read(rank).step >= 1 for rank in range(RANKS)):
                return True
    return False


@pytest.fixture
def project(cluster: SmallCluster, limited: Project, tmp_path: Path) -> Iterator[Project]:
    made = Project(tmp_path / "project", cluster, [SUITE])
    yield made
    made.end()


def soon(project: Project, job: str) -> None:
    """A requeued job begins in three seconds; by itself Slurm waits two minutes, so that nothing of it is left on its
    nodes."""
    slurm_output(project.cluster, "scontrol", "update", f"JobId={job}", "StartTime=now+3seconds")


@pytest.mark.timeout(600)
def test_a_job_that_is_requeued_and_one_that_is_cancelled_go_on_where_they_stopped(project: Project) -> None:
    project.edit(EDITS)
    project.submit(f"results/tables/{SUITE.name}.often.ci.parquet")
    project.until("a first launch", lambda: len(project.finished()) >= 1)
    finished, first = project.finished(), project.jobs[0]
    job_fields = slurm_output(project.cluster, "scontrol", "show", "job", "-o", first).split()
    assert {
        "NumNodes=2",
        "NumTasks=4",
        "TresPerNode=gres:gpu:1",
        "Features=leaf2",
        "TimeLimit=01:00:00",
        "OverSubscribe=NO",
        "Partition=main",
    } <= set(job_fields)
    slurm_output(project.cluster, "scontrol", "requeue", first)
    project.until("the job waits again", lambda: project.state(first) == "PENDING")
    soon(project, first)
    project.until("two more launches", lambda: len(project.finished()) >= len(finished) + 2)
    later = project.finished()
    slurm_output(project.cluster, "scancel", first)
    assert project.wait() == 0, project.said
    assert each_once(project, 5), project.said
    assert finished.items() <= later.items() <= project.finished().items()
    assert len(project.jobs) == 2  # the cancelled one was submitted anew, the requeued one came back by itself
    jobs = [
        (record.placement.job.id, record.placement.job.restarts)
        for record in project.records()
        if record.placement and record.placement.job
    ]
    assert {(first, 0), (first, 1), (project.jobs[1], 0)} == set(jobs)
    assert "scaleproof run disturbed often --size ci --interface eth0 --table " in project.said


@pytest.mark.timeout(600)
def test_a_node_that_goes_in_mid_run_is_named_and_the_plan_is_finished_on_others(project: Project) -> None:
    project.submit(f"results/tables/{SUITE.name}.lost.ci.parquet")
    project.until("a first launch", lambda: len(project.finished()) >= 1)
    project.until("the second launch measures", lambda: measuring(project.folder / "results"))
    finished, job = project.finished(), project.jobs[0]
    lost = project.nodes(job)[1]
    change(project.cluster, lost, on=False)
    try:
        project.until("Slurm misses the node and the job waits again", lambda: project.state(job) == "PENDING")
        soon(project, job)
        assert project.wait() == 0, project.said
    finally:
        change(project.cluster, lost, on=True)
    assert each_once(project, 2), project.said
    assert finished.items() <= project.finished().items() and project.jobs == [job]
    failures = [record.failure for record in project.records() if record.failure is not None]
    assert [failure.code for failure in failures] == ["node_lost"] and lost in failures[0].message


@pytest.mark.timeout(600)
def test_a_job_that_meets_its_time_limit_goes_on_in_the_next_one(limited: Project) -> None:
    assert limited.wait() == 0, limited.said
    assert len(limited.jobs) >= 2 and {limited.state(job) for job in limited.jobs[:-1]} == {"TIMEOUT"}
    assert each_once(limited, 8), limited.said
    assert limited.state(limited.jobs[-1]) == "COMPLETED"
    failed = [record.failure.message for record in limited.records() if record.failure is not None]
    assert len(failed) <= len(limited.jobs) - 1, failed  # a launch that was under way at each end, none after
