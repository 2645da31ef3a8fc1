"""das2016 at size ci through a real Slurm on four nodes: experiments that ask for one, two and four of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from scaleproof.fabric.small_clusters import SmallCluster
from scaleproof.spec.suite import load_suite
from tests.cluster.on_slurm import ROOT, Project
from tools.small_cluster.cluster import slurm_output

EXPERIMENTS = ("throughput", "scaling", "hybrid")


@pytest.fixture(scope="module")
def das2016(cluster: SmallCluster, limited: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    project = Project(tmp_path_factory.mktemp("das2016") / "project", cluster, [ROOT / "suites" / "das2016"])
    _keep_experiments(project.folder / "suites" / "das2016" / "suite.yaml")
    project.submit("das2016")
    assert project.wait() == 0, project.said
    yield project
    project.end()


def _keep_experiments(file: Path) -> None:
    """Leave size ci to EXPERIMENTS alone: the others ask for two nodes as one of these does."""
    suite = yaml.safe_load(file.read_text())
    for name, experiment in suite["experiments"].items():
        if name not in EXPERIMENTS:
            experiment["sizes"].pop("ci", None)
    file.write_text(yaml.safe_dump(suite, sort_keys=False))


@pytest.mark.timeout(600)
def test_each_experiment_is_one_job_of_as_many_nodes_as_it_asks_for(das2016: Project) -> None:
    assert len(das2016.jobs) == len(EXPERIMENTS)
    lines = slurm_output(das2016.cluster, "squeue", "-h", "-t", "all", "-o", "%i %k %D %T").splitlines()
    jobs = {columns[1]: (int(columns[2]), columns[3]) for line in lines if (columns := line.split())[0] in das2016.jobs}
    sizes = {
        name: load_suite(ROOT / "suites" / "das2016").experiment(name).size("ci").request.nodes for name in EXPERIMENTS
    }
    assert set(sizes.values()) == {1, 2, 4}
    assert jobs == {f"rule_run_wildcards_das2016_{name}_ci": (nodes, "COMPLETED") for name, nodes in sizes.items()}


def test_every_planned_launch_ends_well_and_is_judged(das2016: Project) -> None:
    assert {
        (record.case.experiment, record.case.arm, record.failure and record.failure.message)
        for record in das2016.records()
        if record.status != "ok"
    } == set()
    assert {record.case.experiment for record in das2016.records()} == set(EXPERIMENTS)
    results = das2016.folder / "results"
    assert {path.name for path in (results / "tables").glob("*.parquet")} == {
        f"das2016.{name}.ci.parquet" for name in EXPERIMENTS
    }
    assert (results / "claims" / "das2016.ci.json").exists() and (das2016.folder / "reports" / "index.html").exists()


def test_a_launch_of_four_ranks_stands_on_four_nodes_whose_links_carry_its_bytes(das2016: Project) -> None:
    record = next(record for record in das2016.records() if record.case.ranks == 4 and record.case.fabric == "host")
    assert record.placement is not None
    assert [(node.name, node.ranks) for node in record.placement.nodes] == [
        (f"node{number}", [number - 1]) for number in (1, 2, 3, 4)
    ]
    assert {node.switch for node in record.placement.nodes} == {"spine.leaf1", "spine.leaf2"}
    assert record.placement.launcher == "srun" and record.placement.interface == "eth0"
    assert record.evidence == "emulated"  # one kernel below all nodes
    assert len({rank.namespace for rank in record.network}) == 4
    for rank in record.network:
        assert rank.after["eth0"]["tx_bytes"] - rank.before["eth0"]["tx_bytes"] >= rank.asked_bytes > 0


def test_nothing_of_a_job_stays_on_its_nodes(das2016: Project) -> None:
    remaining = slurm_output(
        das2016.cluster,
        "srun",
        "--nodes=4",
        "--ntasks-per-node=1",
        "sh",
        "-c",
        "ls -A /dev/shm; grep -lsa SCALEPROOF_LAUNCH /proc/[0-9]*/environ || true",
    )
    assert set(remaining.split()) <= {"etc"}


def test_a_second_start_submits_nothing(das2016: Project) -> None:
    before = das2016.finished()
    os.rename(das2016.folder / "snakemake.log", das2016.folder / "first.log")
    das2016.submit("das2016")
    assert das2016.wait() == 0, das2016.said
    assert das2016.jobs == [] and das2016.finished() == before
