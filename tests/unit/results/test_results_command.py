"""`scaleproof results` on small records: list, query, export, merge, prune and their errors."""

from __future__ import annotations

import json
import shutil
import subprocess
import zipfile
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest
from rocrate.rocrate import ROCrate

from scaleproof.cli import main
from scaleproof.core.atomic_write import write_form
from scaleproof.core.record_schema import Code
from scaleproof.record.machine import MachineProfile, write_profile
from scaleproof.record.store import Store
from scaleproof.results.crate import read_back
from scaleproof.spec.errors import SpecError
from tests.unit.records import case, commit, failure, record
from tests.unit.report.report_results import example

TCP = case(transport="tcp", arm="b")


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Three records of two cases; the later one of the first case failed."""
    folder = tmp_path / "results"
    commit(folder, record("aa", started_at="2026-01-01T00:00:00"))
    commit(folder, record("bb", started_at="2026-01-02T00:00:00", plan_index=1, status="failed", failure=failure()))
    commit(folder, record("cc", started_at="2026-01-03T00:00:00", case=TCP, case_id=TCP.case_id, machine="n"))
    return folder


def output_of(capsys: pytest.CaptureFixture[str], results: Path, *arguments: object, code: int = 0) -> str:
    """Output of a command: stdout, or its one-line error."""
    capsys.readouterr()
    assert main(["results", *map(str, arguments), "--results", str(results)]) == code
    out, err = capsys.readouterr()
    assert not (code and (out or err.count("\n") != 1))
    return out or err


@pytest.mark.parametrize(
    ("conditions", "launches"),
    [
        ((), "aa bb cc"),
        (("status:failed",), "bb"),
        (("transport:tcp",), "cc"),
        (("machine:n", "machine:m"), "aa bb cc"),
        (("since:2026-01-02",), "bb cc"),
        (("until:2026-01-03", "status:ok"), "aa"),
        (("tag:shared-memory",), "aa bb"),
        (("case:" + TCP.case_id[:4],), "cc"),
        (("@arm:a,status:ok",), "aa"),
        (("failure:rank_killed",), "bb"),
        (("warmup:3.0",), "aa bb cc"),
    ],
)
def test_list_takes_conditions(
    results: Path, capsys: pytest.CaptureFixture[str], conditions: tuple[str, ...], launches: str
) -> None:
    rows = [json.loads(line) for line in output_of(capsys, results, "list", *conditions, "--json").splitlines()]
    assert " ".join(sorted(row["launch"] for row in rows)) == launches
    assert f"{len(rows)} launch" in output_of(capsys, results, "list", *conditions).splitlines()[-1]


def test_list_takes_options_of_plugins_also_at_their_default(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, delay in enumerate((0.0, 2.5)):
        nodes = case(transport="tcp", fabric="guests", nodes=2, link_delay_ms=delay)
        commit(tmp_path, record(f"d{number}", case=nodes, case_id=nodes.case_id))
    for delay, launch in ((0, "d0"), (2.5, "d1")):
        row = json.loads(output_of(capsys, tmp_path, "list", f"fabric.link_delay_ms:{delay}", "--json"))
        assert row["launch"] == launch and row["fields"]["fabric.link_delay_ms"] == delay


@pytest.mark.parametrize(
    ("templates", "line"),
    [
        (("list", "trasport:tcp"), "did you mean 'transport'"),
        (("list", "transport:tpc"), "did you mean 'tcp'"),
        (("list", "tcp"), "is no condition"),
        (("list", "since:2027"), "the last one at 2026-01-03"),
        (("query", "SELECT launhc FROM launches"), '"launch"'),
        (("prune",), "say which"),
        (("query", "SELEC"), "syntax error"),
        (("export", "--duckdb", "{there}"), "exists already"),
        (("merge", "{there}"), "no folder 'runs'"),
        (("merge", "{results}"), "is the results folder itself"),
    ],
)
def test_a_mistake_is_one_line_with_the_nearest_name(
    results: Path, capsys: pytest.CaptureFixture[str], templates: tuple[str, ...], line: str, tmp_path: Path
) -> None:
    (tmp_path / "there").mkdir()
    arguments = [word.format(there=tmp_path / "there", results=results) for word in templates]
    assert line in output_of(capsys, results, *arguments, code=2)


def test_query_answers_over_launches_and_samples(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    joined = "launches JOIN samples USING (launch)"
    sql = f"SELECT transport, count(*) AS n FROM {joined} WHERE status = 'ok' GROUP BY ALL ORDER BY ALL"
    rows = [json.loads(line) for line in output_of(capsys, results, "query", sql, "--json").splitlines()]
    assert rows == [{"transport": "shm", "n": 6}, {"transport": "tcp", "n": 6}]
    assert "transport" in output_of(capsys, results, "query", sql)


def test_a_half_written_record_is_named_and_in_no_answer(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (results / "runs" / TCP.case_id / "cc" / "run.json").write_text("{")
    assert main(["results", "list", "--json", "--results", str(results)]) == 0
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 2 and "cc is not a record" in err


def test_exports_hold_the_chosen_launches_and_can_be_read_by_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results, suite = example(tmp_path)
    chosen = len(list(Store(results).records())) - 1
    launch = next(iter(Store(results).records())).launch
    output_of(capsys, results, "export", "--parquet", tmp_path / "out", "--suites", suite.folder.parent)
    output_of(capsys, results, "export", f"launch:{launch}", "--duckdb", tmp_path / "out.duckdb")
    assert pq.read_table(tmp_path / "out" / "launches.parquet").num_rows == chosen + 1
    with duckdb.connect(str(tmp_path / "out.duckdb"), read_only=True) as database:
        assert database.sql("SELECT launch FROM launches").fetchall() == [(launch,)]
        assert database.sql("SELECT DISTINCT launch FROM samples").fetchall() in ([(launch,)], [])
        assert database.sql("SELECT count(*) FROM claims WHERE suite = 'example'").fetchall() != [(0,)]
        assert database.sql("SELECT count(*) FROM planned WHERE throughput > 0").fetchall() != [(0,)]
    assert {path.name for path in tmp_path.iterdir()} == {"suites", "results", "out", "out.duckdb"}


@pytest.mark.parametrize("name", ["crate", "crate.zip"])
def test_a_crate_is_complete_and_valid_when_read_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    results, suite = example(tmp_path)
    count = len(list(Store(results).records()))
    assert f"{count} launches, read back whole" in output_of(
        capsys, results, "export", "--ro-crate", tmp_path / name, "--suites", suite.folder.parent
    )
    folder = tmp_path / "read"
    if name.endswith(".zip"):
        with zipfile.ZipFile(tmp_path / name) as archive:
            archive.extractall(folder)
    else:
        folder = tmp_path / name
    crate = ROCrate(str(folder))
    assert crate.root_dataset["author"][0]["name"] == "The Scaleproof contributors" and str(crate.license).endswith(
        "LICENSE-2.0"
    )
    for path in (
        "results/claims/example.smoke.json",
        "environment/requirements.lock",
        "suites/example/suite.yaml",
        "tables/samples.parquet",
        "LICENSE",
    ):
        assert crate.dereference(path) is not None and (folder / path).is_file(), path
    assert len(list(Store(folder / "results").records())) == count
    next((folder / "results" / "runs").glob("*/*/samples.parquet")).unlink()
    with pytest.raises(SpecError, match=f"{count - 1} of {count}"):
        read_back(folder, count)
    (folder / "LICENSE").unlink()
    with pytest.raises(SpecError, match="LICENSE"):
        read_back(folder, count - 1)


def other_machine(tmp_path: Path) -> Path:
    """A second folder: one record that the first has, one that is new, a machine's profile."""
    other = tmp_path / "other"
    shutil.copytree(tmp_path / "results", other, ignore=shutil.ignore_patterns("bb", "index"))
    commit(other, record("dd", plan_index=5, machine="far"))
    write_profile(other, MachineProfile(machine="far", code="c", measured_at="2026-02-01T00:00:00"))
    return other


def test_merge_takes_what_is_new_and_says_so(results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = other_machine(tmp_path)
    assert output_of(capsys, results, "merge", other, "--dry-run").startswith("1 launch would be new, 2 here already")
    assert not (results / "machines").exists()
    message = output_of(capsys, results, "merge", other)
    assert message.startswith("1 launch new, 2 here already, 0 no records") and "machines/far/profile.json" in message
    assert sorted(launch.launch for launch in Store(results).records()) == ["aa", "bb", "cc", "dd"]
    assert output_of(capsys, results, "merge", other).startswith("0 launches new, 3 here already")
    assert not any((results / "staging").iterdir())


def test_copying_directories_merges_just_as_well(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output_of(capsys, results, "list")
    other = other_machine(tmp_path)
    subprocess.run(["cp", "-r", f"{other}/runs/.", f"{results}/runs/"], check=True)
    last_line = output_of(capsys, results, "list").splitlines()[-1]
    assert last_line.startswith("4 launches: 3 ok, 1 failed; 2 cases, 3 machines")


def test_merge_refuses_one_launch_with_two_contents_before_it_copies_anything(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = other_machine(tmp_path)
    with (other / "runs" / TCP.case_id / "cc" / "rank-0.log").open("a") as log:
        log.write("one more line")
    assert "launch cc has other content" in output_of(capsys, results, "merge", other, code=2)
    assert not (results / "runs" / case().case_id / "dd").exists() and not (results / "machines").exists()


def test_merge_leaves_damaged_records_and_older_profiles_where_they_are(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = other_machine(tmp_path)
    (other / "runs" / case().case_id / "dd" / "run.json").write_text("")
    write_profile(results, MachineProfile(machine="far", code="c", measured_at="2026-03-01T00:00:00"))
    assert main(["results", "merge", str(other), "--results", str(results)]) == 0
    out, err = capsys.readouterr()
    assert (
        "0 launches new, 2 here already, 1 no records" in out
        and "differs, ours stays: machines/far/profile.json" in out
    )
    assert "dd is not a record" in err and not (results / "runs" / case().case_id / "dd").exists()
    write_form(
        results / "machines" / "far" / "profile.json",
        MachineProfile(machine="far", code="c", measured_at="2026-01-01T00:00:00"),
    )
    assert "new: machines/far/profile.json" in output_of(capsys, results, "merge", other)


def test_prune_shows_first_and_keeps_the_last_good_launch_of_a_case(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(
        results,
        record(
            "ee",
            started_at="2026-01-05T00:00:00",
            plan_index=2,
            code=Code(version="0", commit=None, dirty=None, digest="older"),
        ),
    )
    message = output_of(capsys, results, "prune", "--old-code")
    assert "would remove 2 launches" in message and "2 last good launches of a case stay" in message
    assert len(list(Store(results).records())) == 4
    assert "removed 2 launches" in output_of(capsys, results, "prune", "--old-code", "--yes")
    assert sorted(launch.launch for launch in Store(results).records()) == ["cc", "ee"] and not any(
        (results / "staging").iterdir()
    )
    assert "removed 2 launches" in output_of(capsys, results, "prune", "--old-code", "--even-last", "--yes")
    assert not any((results / "runs").iterdir())


def test_prune_takes_failed_ones_and_conditions(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "would remove 1 launch" in output_of(capsys, results, "prune", "--failed", "transport:shm")
    assert "removed 1 launch" in output_of(capsys, results, "prune", "--failed", "--yes")
    assert sorted(launch.launch for launch in Store(results).records()) == ["aa", "cc"]


def test_prune_finds_what_no_plan_has_and_leaves_suites_alone_that_are_not_here(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results, suite = example(tmp_path)
    commit(results, record("aa"))
    arguments = ("prune", "--unplanned", "--suites", suite.folder.parent)
    assert "would remove 0 launches" in output_of(capsys, results, *arguments)
    (suite.folder / "suite.yaml").write_text(
        (suite.folder / "suite.yaml").read_text().replace("launches: 3", "launches: 2")
    )
    assert "would remove 1 launch" in output_of(capsys, results, *arguments)
