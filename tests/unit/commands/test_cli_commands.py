"""Output of the commands, called in this process: help with examples, doctor, init, cases that cannot run here, logs
with terminal control characters."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from scaleproof.cli import COMMANDS, main
from scaleproof.commands.dry_run import changing
from scaleproof.commands.show import printable
from scaleproof.doctor import leftovers, survey
from scaleproof.spec import registry
from scaleproof.spec.suite import load_suite, suite_folders

SUITE = """\
suite: x
title: A suite
experiments:
  speed:
    summary: One arm
    base: {program: collective, sizes: [8], iterations: 1, ranks: 2}
    arms: {gloo: {transport: gloo}}
    sizes:
      ci: {launches: 2, matrix: [{arms: [gloo]}]}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with one suite."""
    (tmp_path / "suites" / "x").mkdir(parents=True)
    (tmp_path / "suites" / "x" / "suite.yaml").write_text(SUITE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself_with_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    printed = capsys.readouterr().out
    assert ended.value.code == 0 and f"example:\n  scaleproof {command}" in printed


def test_the_help_lists_every_command_and_every_example_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    printed = capsys.readouterr().out
    examples = [line.split()[1] for line in printed.splitlines() if line.startswith("  scaleproof ")]
    assert set(examples) == set(COMMANDS)


def test_doctor_names_everything_that_is_registered(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    named = {(row["kind"], row["name"]) for row in report["names"]}
    assert named >= {(kind, name) for kind in registry.FOLDERS for name in registry.names(kind)}
    assert all(row["why"] and row["advice"] for row in report["names"] if not row["available"])
    assert report["machine"]["cores"] >= 1 and report["machine"]["disk_free_bytes"] > 0
    assert not (folder / "results").exists()


@pytest.fixture(autouse=True)
def _plugins_as_they_are() -> Iterator[None]:
    """Read the registry again after a test that changed it."""
    yield
    registry.forget()


def _without(monkeypatch: pytest.MonkeyPatch, kind: registry.Kind, name: str) -> None:
    absent = dataclasses.replace(registry.get(kind, name), requires=("no_such_library",), advice="install it")
    monkeypatch.setattr(registry, "_replaced", {(kind, name): absent})
    registry.forget()


def test_doctor_says_why_something_is_absent_and_what_to_do(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _without(monkeypatch, "transport", "gloo")
    assert main(["doctor"]) == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if "no_such_library" in line)
    assert "transport gloo" in line and "is not installed" in line and "install it" in line


def test_doctor_finds_a_folder_that_a_dead_supervisor_left(folder: Path) -> None:
    (folder / "results" / "staging" / "0123456789abcdef").mkdir(parents=True)
    of_launch = [item for item in leftovers.leftovers(folder / "results") if item["launch"] == "0123456789abcdef"]
    assert [item["kind"] for item in of_launch] == ["folder"] and "scaleproof run" in of_launch[0]["advice"]


def test_doctor_cleans_what_dead_launches_left_and_nothing_else(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    staged, launch = folder / "results" / "staging" / "0123456789abcdef", "fedcba9876543210"
    staged.mkdir(parents=True)
    segment, foreign = Path("/dev/shm") / f"scaleproof-{launch}", Path("/dev/shm") / f"scaleproof-tests-{launch[:3]}"
    try:
        segment.mkdir()
        foreign.touch()
        left_behind = (
            {"launch": name, "kind": kind, "what": str(path)}
            for name, kind, path in [(launch, "shared memory", segment), ("tests", "shared memory", foreign)]
        )
        monkeypatch.setattr(
            leftovers, "leftovers", lambda _results, items=list(left_behind): items
        )  # other launches may live on this machine meanwhile
        assert main(["doctor", "--clean"]) == 0
        assert not staged.exists() and not segment.exists() and foreign.exists()
        assert str(segment) in capsys.readouterr().out
    finally:
        foreign.unlink(missing_ok=True)


def test_an_import_that_fails_is_found_with_its_last_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken_library.py").write_text("raise ImportError('libfoo.so.1: cannot open shared object file')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert (
        survey._import_error("broken_library")
        == "`import broken_library` fails: ImportError: libfoo.so.1: cannot open shared object file"
    )
    assert survey._import_error("json") == ""


def test_a_case_whose_library_is_missing_is_recorded_and_not_a_mistake(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _without(monkeypatch, "transport", "gloo")
    assert main(["run", "x", "--size", "ci"]) == 1
    assert "2 not runnable here" in capsys.readouterr().out
    launch = next((folder / "results" / "runs").glob("*/*")).name
    assert main(["show", launch]) == 0
    printed = capsys.readouterr().out
    assert (
        f"launch {launch}: not_runnable" in printed and "no_such_library" in printed and "advice: install it" in printed
    )


def test_a_single_case_whose_library_is_missing_is_one_line_and_writes_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _without(monkeypatch, "transport", "gloo")
    case_id = load_suite("x").experiment("speed").size("ci").cases[0].case_id
    assert main(["run", "x", "--size", "ci", "--case", case_id]) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1 and "no_such_library" in lines[0] and "install it" in lines[0]
    assert not (folder / "results").exists()


def test_a_suite_of_ones_own_loads_and_dry_runs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from scaleproof.claims.claims_yaml import load_claims

    assert main(["init", "suite", "mine", "--path", "elsewhere"]) == 0
    suite = load_suite("elsewhere/mine")
    assert suite.name == "mine" and len(load_claims(suite)) == 2
    assert main(["run", "elsewhere/mine", "--size", "smoke", "--dry-run"]) == 0
    assert main(["run", "mine", "--suites", "elsewhere", "--size", "ci", "--dry-run"]) == 0
    assert "mine training ci: 1 cases, 1 launches" in capsys.readouterr().out
    assert "_template" not in "".join(path.read_text() for path in (folder / "elsewhere/mine").iterdir())


def test_suites_are_looked_for_where_the_variable_says(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "other" / "z").mkdir(parents=True)
    (folder / "other" / "z" / "suite.yaml").write_text(SUITE.replace("suite: x", "suite: z"))
    monkeypatch.setenv("SCALEPROOF_SUITES", "other")
    assert load_suite("z").name == "z" and load_suite("x").name == "x"
    monkeypatch.chdir(folder / "other")
    assert suite_folders()[-1].parts[-1] == "suites" and suite_folders()[-1].is_absolute()


def test_a_dry_run_shows_the_fields_that_differ(folder: Path) -> None:
    (folder / "suites/x/suite.yaml").write_text(
        SUITE.replace("arms: [gloo]", "arms: [gloo], sweep: {ranks: [1, 2], sizes: [[8], [64]]}")
    )
    assert changing(load_suite("x").experiment("speed").size("ci").cases) == ["ranks", "sizes"]


def test_a_dry_run_of_one_case_counts_its_launches_only(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Over two experiments, of which one has the case."""
    other = """\
  larger:
    summary: Two arms
    base: {program: collective, sizes: [64], iterations: 1, ranks: 2}
    arms: {gloo: {transport: gloo}, tcp: {transport: tcp, collective: ring}}
    sizes:
      ci: {launches: 3, matrix: [{arms: [gloo, tcp]}]}
"""
    (folder / "suites/x/suite.yaml").write_text(SUITE + other)
    suite = load_suite("x")
    all_cases = {case.arm: case.case_id for case in suite.experiment("larger").size("ci").cases}
    excluded = {all_cases["tcp"], suite.experiment("speed").size("ci").cases[0].case_id}
    assert main(["run", "x", "--size", "ci", "--dry-run"]) == 0
    printed = capsys.readouterr().out
    assert "\n8 launches, about" in printed and all(case_id in printed for case_id in (*excluded, all_cases["gloo"]))
    assert main(["run", "x", "--size", "ci", "--dry-run", "--case", all_cases["gloo"]]) == 0
    printed = capsys.readouterr().out
    assert "x larger ci: 1 cases, 3 launches" in printed and "\n3 launches, about" in printed
    assert all_cases["gloo"] in printed and not any(case_id in printed for case_id in excluded)
    assert not (folder / "results").exists()


def test_a_report_names_suites_that_nobody_has_begun_in_one_line_and_gaps_of_the_others(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "suites" / "z").mkdir()
    (folder / "suites" / "z" / "suite.yaml").write_text(SUITE.replace("suite: x", "suite: z"))
    assert main(["collect", "x", "speed", "--size", "ci"]) == 0
    assert main(["report", "--size", "ci"]) == 0
    gap, unbegun = capsys.readouterr().err.splitlines()[-2:]
    assert gap == "warning: results/claims/x.ci.json is missing; `scaleproof judge x --size ci` makes it"
    assert unbegun == "nothing of size ci yet: z; `snakemake NAME --config size=ci` runs one"
    assert main(["report", "z", "--size", "ci"]) == 0
    assert capsys.readouterr().err.count("warning: ") == 2, "a suite that was asked for by name is told of whole"


def test_a_log_cannot_steer_the_terminal() -> None:
    assert printable("\x1b[2Jgone\x07\tend\r\n") == "\ufffd[2Jgone\ufffd\tend"


def test_the_docs_name_every_command() -> None:
    commands = (Path(__file__).parents[3] / "docs" / "cli.md").read_text()
    assert [name for name in COMMANDS if f"| `{name}" not in commands] == []


def test_a_dry_run_of_one_case_shows_no_experiment_without_it(capsys: pytest.CaptureFixture[str]) -> None:
    suites = ["--suites", str(Path(__file__).parents[3] / "suites")]
    assert main(["run", "das2016", "throughput", "--size", "ci", "--dry-run", *suites]) == 0
    case = capsys.readouterr().out.splitlines()[4].split()[0]
    assert main(["run", "das2016", "--size", "ci", "--dry-run", "--case", case, *suites]) == 0
    assert [line for line in capsys.readouterr().out.splitlines() if line.startswith("das2016 ")] == [
        "das2016 throughput ci: 1 cases, 1 launches, order seed 1170601523"
    ]
