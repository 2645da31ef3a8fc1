"""Philly's job log in helios2021, and the nodes that jobs of a trace used: machines of a log, or packed jobs."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scaleproof.programs.own import load_entry
from scaleproof.spec.errors import SpecError
from tests.unit.suites.test_helios2021_traces import HEADER, helios_row, written

PROGRAMS = Path(__file__).resolve().parents[3] / "suites" / "helios2021" / "programs"
load_entry(PROGRAMS, "scheduling")
philly, packing, sources, characteristics, used = (
    importlib.import_module(f"suite_programs.{name}")
    for name in ("philly", "packing", "sources", "characteristics", "used_series")
)


def philly_log(folder: Path) -> Path:
    def attempt(day: int, minutes: int, gpus: int, machine: str = "m1") -> dict[str, Any]:
        return {
            "start_time": f"2017-10-0{day} 08:00:00",
            "end_time": f"2017-10-0{day} 08:{minutes}:00",
            "detail": [{"ip": machine, "gpus": [f"gpu{number}" for number in range(gpus)]}],
        }

    def job(name: str, attempts: list[dict[str, Any]], status: str = "Pass", vc: str = "6214e9abc") -> dict[str, Any]:
        when = "2017-10-02 07:00:00"
        return {"jobid": name, "user": "u", "vc": vc, "status": status, "submitted_time": when, "attempts": attempts}

    path = folder / "cluster_job_log"
    unended = attempt(2, 10, 1) | {"end_time": None}
    jobs = [
        job("a", [attempt(3, 20, 2), attempt(4, 20, 4)]),
        job("b", []),
        job("c", [unended]),
        job("d", [attempt(3, 30, 1)], "Killed"),
        job("e", [attempt(3, 40, 1, "m2")], vc="795a4cabc"),
    ]
    path.write_text(json.dumps(jobs))
    return path


def test_philly_jobs_run_as_long_as_their_attempts_on_the_most_gpus(tmp_path: Path) -> None:
    jobs = philly.read_philly(philly_log(tmp_path))
    assert jobs.duration.tolist() == [2400.0, 1800.0] and jobs.gpus.tolist() == [4, 1]
    assert jobs.pools.names == ("6214e9",) and jobs.of_vc("6214e9").count == 2
    assert jobs.pools.nodes.tolist() == [64] and jobs.left_out == 1  # the artifact does not simulate the other VC
    assert philly.read_philly(tmp_path / "cluster_job_log", every_vc=True).pools.nodes.tolist() == [1, 1]
    shares = characteristics.found_in(characteristics.philly_log(tmp_path / "cluster_job_log"), "philly", 0)
    assert shares["cancelled_gpu_time"] == pytest.approx(100 * 1800 / (4 * 2400 + 1800 + 2400))
    (tmp_path / "broken").write_text("[{")
    with pytest.raises(SpecError, match="broken"):
        philly.read_philly(tmp_path / "broken")


def test_nodes_of_philly_are_those_of_the_artifact_or_of_a_file(tmp_path: Path) -> None:
    assert sum(philly.NODES.values()) == 352 and len(philly.NODES) == 11
    capacity = tmp_path / "nodes.csv"
    capacity.write_text("vc,nodes\n6214e9abc,2\n795a4cabc,1\n")
    jobs = philly.read_philly(philly_log(tmp_path), capacity)
    assert dict(zip(jobs.pools.names, jobs.pools.nodes.tolist(), strict=True)) == {"6214e9": 2, "795a4c": 1}


def test_a_broken_philly_log_is_refused_with_the_number_of_the_job(tmp_path: Path) -> None:
    path = philly_log(tmp_path)
    jobs = json.loads(path.read_text())
    path.write_text(json.dumps([*jobs[:3], jobs[3] | {"submitted_time": "yesterday"}]))
    with pytest.raises(SpecError, match="cluster_job_log: job 4: submitted_time is no time"):
        philly.read_philly(path)
    jobs[3]["attempts"][0]["detail"] = jobs[3]["attempts"][0]["detail"] * 600
    path.write_text(json.dumps(jobs))
    with pytest.raises(SpecError, match="cluster_job_log: job 4: more GPUs than its VC has: 600 of 512 in '6214e9'"):
        philly.read_philly(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"vc": None}, "job 2: has no key 'vc'"),
        ({"attempts": None}, "job 2: has no key 'attempts'"),
        ({"user": None}, "job 2: has no key 'user'"),
        ({"start_time": "soon"}, "job 2: start_time is no time"),
        ({"end_time": "2017-10-01 00:00:00"}, "job 2: an attempt ends before it begins"),
    ],
)
def test_a_philly_log_without_a_key_or_with_times_that_run_back_is_one_line(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    path = philly_log(tmp_path)
    jobs = json.loads(path.read_text())
    second = json.loads(json.dumps(jobs[0]))
    for key, value in change.items():
        if key in second and value is None:
            del second[key]
        else:
            second["attempts"][0][key] = value
    path.write_text(json.dumps([jobs[0], second]))
    with pytest.raises(SpecError, match=f"cluster_job_log: {message}$"):
        philly.read_philly(path)


def test_jobs_that_share_a_node_use_one_and_nodes_of_vcs_are_apart() -> None:
    def busiest(gpus: list[int], nodes: list[int], vc: list[int]) -> int:
        count = len(gpus)
        begins, ends = packing.busy_times(
            np.zeros(count), np.full(count, 60.0), np.array(gpus), np.array(nodes), np.array(vc), 8
        )
        assert set(begins) == {0.0} and set(ends) == {60.0}
        return len(begins)

    assert busiest([1, 1, 6], [1, 1, 1], [0, 0, 0]) == 1
    assert busiest([1, 1, 6], [1, 1, 1], [0, 1, 0]) == 2
    assert busiest([8, 16, 1], [1, 2, 1], [0, 0, 0]) == 4
    assert busiest([8, 4], [2, 1], [0, 0]) == 2  # the log says that the first had two nodes: 4 GPUs on each


def test_a_node_is_busy_from_its_first_job_to_its_last() -> None:
    begins, ends = packing.busy_times(
        np.array([0.0, 50.0, 80.0, 200.0]), np.array([60.0, 90.0, 100.0, 200.0]), np.array([4, 4, 1, 1]),
        np.ones(4, np.int64), np.zeros(4, np.int64), 8,
    )  # fmt: skip
    assert list(zip(begins, ends, strict=True)) == [(0.0, 100.0)]  # one node; the last took no time
    keys = np.array(["a", "b", "a", "a"])
    found = packing.united(keys, np.array([0.0, 1.0, 5.0, 20.0]), np.array([10.0, 2.0, 12.0, 30.0]))
    assert [part.tolist() for part in found] == [[0.0, 20.0, 1.0], [12.0, 30.0, 2.0]]


def in_folder(folder: Path, monkeypatch: pytest.MonkeyPatch, trace: str, cluster: str) -> Any:
    monkeypatch.setenv(sources.FOLDER, str(folder))
    used.used_in_trace.cache_clear()
    found = used.used_in_trace(trace, cluster)
    used.used_in_trace.cache_clear()
    return found


def test_used_nodes_and_characteristics_of_a_helios_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, [HEADER, *map(helios_row, range(100))], "date,total\n2020-09-01,40\n")
    found = in_folder(tmp_path, monkeypatch, "helios", "earth")
    assert found.total == 5 and found.used[:8].tolist() == [0, 0, 1, 1, 1, 1, 2, 2]
    assert str(found.first) == "2020-09-01T00:00:00" and len(found.used) == 21 * 144 and found.test == 21
    written(tmp_path, [HEADER, *map(helios_row, range(100))], "date,total\n2020-09-01,8\n")
    few = in_folder(tmp_path, monkeypatch, "helios", "earth")
    assert few.total == 1 and few.used.max() == 1 and few.above == (found.used > 1).sum() > 0
    log = characteristics.helios_log(tmp_path / "Earth" / "cluster_log.csv")
    assert characteristics.shares_of_status(log, np.ones(100)) == {"completed": 25.0, "cancelled": 25.0, "failed": 50.0}


def test_used_nodes_of_philly_are_distinct_machines_to_the_end_of_the_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    philly_log(tmp_path)
    found = in_folder(tmp_path, monkeypatch, "philly", "philly")
    assert str(found.first) == "2017-10-03T00:00:00" and len(found.used) == 73 * 144 and found.test == 14
    eight = 8 * 6
    assert found.total == 2 and found.used[eight - 1 : eight + 5].tolist() == [0, 2, 2, 2, 1, 0]  # m1 has two jobs
    assert found.used[144 + eight : 144 + eight + 3].tolist() == [1, 1, 0]
