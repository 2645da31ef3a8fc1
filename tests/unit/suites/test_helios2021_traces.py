"""The traces of helios2021: what is read of each format, what is refused in one line, and what the generator makes."""

from __future__ import annotations

import importlib
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from scaleproof.programs.own import load_entry
from scaleproof.spec.errors import SpecError
from tests.short_form import case_from

SUITE = Path(__file__).resolve().parents[3] / "suites" / "helios2021"
load_entry(SUITE / "programs", "scheduling")
traces, helios, sources, generator, check, characteristics = (
    importlib.import_module(f"suite_programs.{name}")
    for name in ("traces", "helios", "sources", "generator", "marginal_check", "characteristics")
)
HEADER = "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue"
STATES = ("COMPLETED", "CANCELLED", "FAILED", "TIMEOUT")


def helios_row(number: int) -> str:
    """Every fourth job is one of processors alone."""
    begin = datetime(2020, 9, 1) + timedelta(minutes=20 * number)
    end, gpus = begin + timedelta(seconds=600 + number), (0, 1, 8, 16)[number % 4]
    nodes = max(1, gpus // 8)
    state = STATES[number % 4]
    return (
        f"{number},u{number % 7},vc{number % 2},{gpus},4,{nodes},{state},{begin},{begin},{end},{600 + number},{number}"
    )


def written(folder: Path, lines: list[str], capacity: str = "") -> Path:
    (folder / "Earth").mkdir(exist_ok=True)
    path = folder / "Earth" / "cluster_log.csv"
    path.write_text("\n".join(lines) + "\n")
    if capacity:
        path.with_name("cluster_gpu_number.csv").write_text(capacity)
    return path


def refused(path: Path, **further: Any) -> str:
    with pytest.raises(SpecError) as error:
        helios.read_helios(path, **further)
    text = str(error.value)
    assert "\n" not in text
    return text.removeprefix(str(path))


def test_helios_jobs_with_gpus_in_the_days_and_the_nodes_of_their_vcs(tmp_path: Path) -> None:
    path = written(tmp_path, [HEADER, *map(helios_row, range(144))])
    capacity = tmp_path / "gpus.csv"
    capacity.write_text("date,vc0,vc1,total\n2020-08-31,800,800,1600\n2020-09-01,16,24,40\n2020-09-02,24,16,40\n")
    jobs = helios.read_helios(path, capacity, "2020-09-01", "2020-09-01")
    assert jobs.count == 72 * 3 // 4 and sorted(set(jobs.gpus.tolist())) == [1, 8, 16]
    assert dict(zip(jobs.pools.names, jobs.pools.nodes.tolist(), strict=True)) == {"vc0": 2, "vc1": 3}
    assert jobs.line[0] == 3 and jobs.duration[0] == 601


def test_vcs_are_those_of_the_artifact_and_jobs_of_vcs_without_nodes_are_counted(tmp_path: Path) -> None:
    rows = [helios_row(number) for number in range(80)]
    for old, new in ((0, "vcbIW"), (1, "vcJkd")):  # the artifact merges the first into vcvGl, and drops the second
        rows = [row.replace(f",vc{old},", f",{new},") if int(row.split(",")[0]) > 40 else row for row in rows]
    rows = [row.replace(",vc0,", ",vcvGl,").replace(",vc1,", ",vcnone,") for row in rows]
    path = written(tmp_path, [HEADER, *rows])
    capacity = tmp_path / "gpus.csv"
    capacity.write_text("date,vcvGl,vcbIW,vcJkd,vcnone,total\n2020-09-09,80,8,16,16,120\n2020-09-10,23,0,0,7,30\n")
    jobs = helios.read_helios(path, capacity, "2020-09-01", "2020-09-26", "venus")
    assert jobs.pools.names == ("vcvGl",) and jobs.pools.nodes.tolist() == [2]  # of that day, in whole nodes
    assert jobs.count == 20 and jobs.left_out == 40  # 8 GPUs each; those with 1 and 16 are of the other VCs
    other = helios.read_helios(path, capacity, "2020-09-01", "2020-09-26", "mine")
    assert other.pools.names == ("vcJkd", "vcbIW", "vcnone", "vcvGl")  # the most of any day, and no VC is another


def test_without_capacities_a_vc_has_the_nodes_that_were_in_use_at_once() -> None:
    begins, ends = np.array([0.0, 5.0, 10.0]), np.array([10.0, 15.0, 20.0])
    found = traces.used_nodes(begins, ends, np.array([8, 9, 3]), np.array([0, 0, 1]), 2)
    assert found.tolist() == [3, 1]  # 17 GPUs, and 3


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda rows: [HEADER.replace("gpu_num", "gpus_num"), *rows[1:]], ":1: no column 'gpu_num'; did you mean"),
        (lambda rows: [*rows[:2], rows[2].replace(",601,", ",sixty,")], ":3: duration is no number: 'sixty'"),
        (lambda rows: [*rows[:2], rows[2].replace(",601,", ",-5,")], ":3: duration is not 0 s or more"),
        (
            lambda rows: [*rows[:2], rows[2].replace("vc1,1,", "vc1,1.5,")],
            ":3: gpu_num is no whole number from 0 on: '1.5",
        ),
        (
            lambda rows: [*rows[:2], rows[2].replace("vc1,1,", "vc1,nan,")],
            ":3: gpu_num is no whole number from 0 on: 'nan",
        ),
        (
            lambda rows: [*rows[:2], rows[2].replace("vc1,1,", "vc1,-1,")],
            ":3: gpu_num is no whole number from 0 on: '-1",
        ),
        (lambda rows: [*rows[:2], rows[3], rows[2]], ":4: submit_time runs back: it is before that of the job above"),
        (lambda rows: [*rows[:2], rows[2] + ",1"], ":3: CSV parse error"),
        (lambda rows: [*rows[:2], rows[2].replace("00:30:01", "00:10:01")], ":3: times run back: end_time is before"),
        (lambda rows: [rows[0], rows[1]], ": has no jobs with GPUs"),
    ],
)
def test_a_broken_helios_trace_is_refused_in_one_line(tmp_path: Path, change: Any, expected: str) -> None:
    rows = [HEADER, *map(helios_row, range(8))]
    assert refused(written(tmp_path, change(rows))).startswith(expected)


def test_a_job_with_more_gpus_than_its_vc_is_refused_with_its_line(tmp_path: Path) -> None:
    path = written(tmp_path, [HEADER, *map(helios_row, range(8))])
    capacity = tmp_path / "gpus.csv"
    capacity.write_text("date,vc0,vc1,total\n2020-09-01,8,8,16\n")
    text = refused(path, capacity=capacity, first="2020-09-01", last="2020-09-26")
    assert text == ":5: more GPUs than its VC has: 16 of 8 in 'vc1'"


@pytest.mark.parametrize(
    ("swap", "expected"),
    [
        (lambda rows: [*rows[:9], rows[12], rows[9]], "11: submit_time runs back"),
        (lambda rows: [*rows[:9], rows[9].replace(",128,", ",0,")], "10: num_chips is no whole number from 1 on: '0'"),
        (lambda rows: [*rows[:9], rows[9].replace(",128,", ",1280,")], "10: more GPUs than its VC has: 1280 of 160"),
        (lambda rows: [*rows[:9], rows[9].replace("vcvGl", "vcX")], "10: tenant 'vcX' is none of vcvGl, vcvlY"),
    ],
)
def test_a_broken_slice_is_refused_in_one_line(tmp_path: Path, swap: Any, expected: str) -> None:
    path = tmp_path / "slice.csv"
    path.write_text("\n".join(swap(traces.SLICE.read_text().splitlines())) + "\n")
    with pytest.raises(SpecError, match=f"^{path}:{expected}"):
        traces.read_slice(path)


def test_a_trace_that_is_not_here_says_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(sources.FOLDER, str(tmp_path))
    case = case_from(
        {
            "program": "own",
            "entry": "scheduling",
            "suite": "helios2021",
            "experiment": "helios",
            "arm": "fifo",
            "transport": "tcp",
            "fabric": {"name": "simulated", "costs": "stated"},
            "ranks": 1,
            "options": {"trace": "helios", "cluster": "earth", "policy": "fifo"},
        }
    )
    reason, advice = sources.missing(case)
    assert (
        reason == "the trace Earth/cluster_log.csv is not here" and "HeliosData" in advice and sources.FOLDER in advice
    )
    written(tmp_path, [HEADER])
    assert sources.missing(case) is None


def test_marginals_are_the_published_rows() -> None:
    quantities = {
        "fig5a": "duration",
        "fig5b": "cpu_duration",
        "fig6a": "gpus",
        "fig6b": "gpu_time",
        "fig1a": "duration",
    }
    known, rows = generator.marginals(), yaml.safe_load((SUITE / "published.yaml").read_text())["rows"]
    compared = 0
    for row in rows:
        figure = row["id"].split(".")[1]
        if figure in quantities:
            _, shares = known[row["x"]["cluster"], quantities[figure]]
            assert (100 * shares).tolist() == pytest.approx(row["x"]["values"]), row["id"]
            compared += 1
        if figure == "fig7b":
            stated = [row["x"][name] for name in characteristics.STATUSES]
            assert (100 * known["helios_all", f"status_{row['x']['gpus']}"][1]).tolist() == pytest.approx(stated)
            compared += 1
    assert compared == 25 and len(known) == 25


@pytest.mark.parametrize("cluster", sources.CLUSTERS)
def test_generated_jobs_have_the_published_marginals_and_the_load(cluster: str) -> None:
    jobs = generator.generate(generator.Shape(cluster, 20000, 133, 27, 0.7), 3)
    found = check.distances(jobs, cluster)
    assert max(found[name] for name in ("duration_distance", "gpus_distance", "gpu_time_distance")) < 3
    assert jobs.load == pytest.approx(0.7, rel=0.01) and jobs.pools.gpus == 1064
    other = generator.generate(generator.Shape(cluster, 20000, 133, 27, 0.7), 4)
    assert not np.array_equal(jobs.submit, other.submit)


def test_equal_jobs_and_unknown_clusters() -> None:
    assert set(generator.generate(generator.Shape("venus", 500, 8, 1, 0.5, 60.0), 1).duration) == {60.0}
    with pytest.raises(SpecError, match="options.cluster: 'mars' has no published gpus; known: earth, helios_all"):
        generator.generate(generator.Shape("mars", 500, 8, 1, 0.5), 1)
