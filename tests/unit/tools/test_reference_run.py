"""The reference run is one run: what is no single commit, machine and version of the code is neither made, stored nor
shown, and each refusal is one line."""

from __future__ import annotations

import csv
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from scaleproof.claims.claims_file import write_claims
from scaleproof.claims.judging_version import judging_version
from scaleproof.record.digest import machine_id
from scaleproof.record.used_code import content_hash
from scaleproof.spec.suite import list_suites, load_suite
from tests.unit.report.report_results import claim
from tools.reference import ROOT, SIZE, archive, one_run, shares, steps, stored, tables
from tools.reference.one_run import Fact, Manifest

COMMIT = "c" * 40
RUNS = "suite,experiment,launch,status\n"
MODULE = "scaleproof.stats.intervals"
JUDGED = {"das2016": judging_version(ROOT / "suites" / "das2016")}


def fact(**fields: Any) -> Fact:
    base: dict[str, Any] = {
        "name": "das2016 aa",
        "suite": "das2016",
        "size": SIZE,
        "evidence": "measured",
        "commit": COMMIT,
        "dirty": False,
        "machine": "m",
        "code": "d",
        "files": {MODULE: "1"},
    }
    return Fact(**(base | fields))


def manifest(**fields: Any) -> Manifest:
    base: dict[str, Any] = {
        "commit": COMMIT,
        "machine": "m",
        "codes": {"measured": "d"},
        "suites": ("das2016",),
        "launches": {"failed": 1, "not_runnable": 2, "ok": 9},
        "minutes": {"calibrate": 1.5, "das2016": 9.0, "pages": 0.5},
        "ended": "2026-11-24T10:00:00+00:00",
        "files": {MODULE: content_hash(MODULE)},
        "judged_by": JUDGED,
    }
    return Manifest(**(base | fields))


def write_launch(results: Path, launch: str, suite: str = "das2016", **fields: Any) -> None:
    code = {"commit": COMMIT, "dirty": False, "digest": "d", "files": {}} | fields.pop("code", {})
    form = {"launch": launch, "case": {"suite": suite}, "size": SIZE, "evidence": "measured", "machine": machine_id()}
    folder = results / "runs" / "case" / launch
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps(form | fields | {"code": code}))


def test_one_commit_machine_and_version_of_the_code_is_one_run() -> None:
    assert one_run.mixture([fact(), fact(evidence="simulated", code="e"), fact(suite="micro")]) == ""
    assert one_run.mixture([]) == "no launches"


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ({"commit": "d" * 40}, "launches of 2 commits: 1 of cccccccccc, 1 of dddddddddd"),
        ({"machine": "n"}, "launches of 2 machines: 1 of m, 1 of n"),
        ({"dirty": True, "name": "micro bb"}, "1 launches ran code that no commit has, the first is micro bb"),
        ({"code": "e"}, "measured launches of 2 versions of the code: 1 of d, 1 of e"),
        ({"files": {MODULE: "2"}, "name": "micro bb"}, f"two versions of module {MODULE}, the second in micro bb"),
    ],
)
def test_a_mixture_is_refused_in_one_line(other: dict[str, Any], why: str) -> None:
    assert one_run.mixture([fact(), fact(**other)]) == why
    with pytest.raises(SystemExit, match="not one run: "):
        one_run.manifest_of([fact(), fact(**other)], ["das2016"], ["das2016"], {}, {}, "", JUDGED)


def test_a_run_without_a_suite_is_not_whole() -> None:
    with pytest.raises(SystemExit, match="no launch of crosscheck, micro"):
        names = ["das2016", "micro", "crosscheck"]
        one_run.manifest_of([fact()], names, names, {}, {}, "", JUDGED)
    with pytest.raises(SystemExit, match="no verdicts of das2016"):
        one_run.manifest_of([fact()], ["das2016"], ["das2016"], {}, {}, "", {})


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository with two suites and a commit."""
    for name in ("micro", "alpha"):
        (tmp_path / "suites" / name).mkdir(parents=True)
        (tmp_path / "suites" / name / "suite.yaml").write_text("suite: x\n")
    (tmp_path / ".gitignore").write_text("results/\n")
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "x"]):
        identity = ["-c", "user.name=x", "-c", "user.email=x@x", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", "-C", str(tmp_path), *identity, *command], check=True)
    return tmp_path


class Commands:
    """Notes commands instead of running them; one of them may fail."""

    def __init__(self, failing: str = "") -> None:
        self.failing, self.ran = failing, list[str]()

    def __call__(self, command: Sequence[str], root: Path) -> int:
        self.ran.append(" ".join(command))
        return int(bool(self.failing) and self.failing in self.ran[-1])


def test_every_suite_is_run_after_calibration_and_before_the_pages(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commands = Commands()
    state = steps.run(root, "ci", runner=commands)
    assert commands.ran == [
        "scaleproof calibrate --comparisons 2",
        "snakemake results/claims/micro.ci.json --config size=ci",
        "snakemake results/claims/alpha.ci.json --config size=ci",
        "snakemake all --config size=ci",
    ]
    assert list(state.minutes) == ["calibrate", "micro", "alpha", "pages"]
    assert "alpha: 0.0 minutes" in capsys.readouterr().out
    assert stored.read_state(root / "results").done == state.done


def test_a_trial_has_the_named_suites_alone(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    commands = Commands()
    steps.run(root, "ci", only=["alpha"], runner=commands)
    assert "a trial" in (printed := capsys.readouterr().out) and "pack" not in printed
    assert commands.ran == ["snakemake results/claims/alpha.ci.json --config size=ci", "scaleproof report --size ci"]
    whole = Commands()
    steps.run(root, "ci", runner=whole)
    assert whole.ran == [
        "scaleproof calibrate --comparisons 2",
        "snakemake results/claims/micro.ci.json --config size=ci",
        "snakemake all --config size=ci",
    ]
    with pytest.raises(SystemExit, match="no suite 'alpa'; did you mean 'alpha'"):
        steps.run(root, "ci", only=["alpa"], runner=commands)


def test_an_interrupted_run_goes_on_at_the_step_that_failed(root: Path) -> None:
    with pytest.raises(SystemExit, match="alpha: ended with code 1; the same command goes on from here"):
        steps.run(root, "ci", runner=Commands("alpha"))
    with pytest.raises(SystemExit, match="has not ended"):
        stored.read_state(root / "results")
    again = Commands()
    steps.run(root, "ci", runner=again)
    assert again.ran == ["snakemake results/claims/alpha.ci.json --config size=ci", "snakemake all --config size=ci"]


def test_an_interrupted_run_says_so_in_one_line_and_keeps_its_minutes(root: Path) -> None:
    def interrupted(command: Sequence[str], root: Path) -> int:
        raise KeyboardInterrupt

    with pytest.raises(SystemExit, match="calibrate: interrupted; the same command goes on from here"):
        steps.run(root, "ci", runner=interrupted)
    assert "calibrate" in steps.State.model_validate_json((root / "results" / steps.STATE).read_bytes()).minutes


def test_a_tree_with_changes_is_refused(root: Path) -> None:
    (root / "suites" / "micro" / "suite.yaml").write_text("suite: y\n")
    with pytest.raises(SystemExit, match=r"1 files are not as committed, the first is suites/micro/suite.yaml"):
        steps.run(root, runner=Commands())


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({}, f"1 of commit cccccccccc, size {SIZE}"),
        ({"code": {"dirty": True}}, "cccccccccc with changes"),
        ({"machine": "n", "code": {"commit": ""}}, "commit none"),
    ],
)
def test_results_with_launches_of_another_run_are_refused(root: Path, fields: dict[str, Any], named: str) -> None:
    write_launch(root / "results", "aa", **fields)
    with pytest.raises(SystemExit, match=f"has 1 launches of other runs: .*{named}"):
        steps.run(root, runner=Commands())


def test_launches_of_another_size_are_refused_and_those_of_the_run_are_not(root: Path) -> None:
    head = subprocess.run(["git", "-C", str(root), "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()
    write_launch(root / "results", "aa", suite="micro", code={"commit": head})
    steps.run(root, runner=Commands())
    write_launch(root / "results", "bb", suite="micro", size="small", code={"commit": head})
    with pytest.raises(SystemExit, match="size small"):
        steps.run(root, runner=Commands())


def test_the_state_of_another_commit_is_refused(root: Path) -> None:
    steps.run(root, "ci", runner=Commands())
    with pytest.raises(SystemExit, match="and size ci; a reference run is of one commit"):
        steps.run(root, "smoke", runner=Commands())


def finished_run(folder: Path, **launch: Any) -> tuple[Path, Path]:
    """Results and reports of a whole run at size smoke."""
    results, reports = folder / "results", folder / "reports"
    for number, name in enumerate(steps.suite_names()):
        write_launch(results, f"a{number}", suite=name)
    if launch:
        write_launch(results, "zz", **launch)
    judged_by = dict.fromkeys(steps.suite_names(), "j")
    state = steps.State(
        commit=COMMIT, size=SIZE, minutes={"pages": 1.0}, done=["pages"], ended="2026-11-24", judged_by=judged_by
    )
    (results / steps.STATE).write_text(state.model_dump_json())
    reports.mkdir()
    (reports / "runs.csv").write_text(f"{RUNS}micro,costs,a0,ok\n")
    write_claims(reports / "claims.json", [], judged_by)
    return results, reports


def test_a_finished_run_has_a_manifest(tmp_path: Path) -> None:
    made = stored.manifest_of_run(*finished_run(tmp_path))
    assert (made.commit, made.machine, made.codes) == (COMMIT, machine_id(), {"measured": "d"})
    assert made.launches == {"ok": 1}
    one_run.write_manifest(tmp_path, made)
    assert one_run.read_manifest(tmp_path) == made


def test_what_is_no_single_run_is_not_stored(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="launches of 2 commits"):
        stored.manifest_of_run(*finished_run(tmp_path, code={"commit": "d" * 40}))
    (tmp_path / "reports" / "runs.csv").write_text(f"{RUNS}micro,costs,of-earlier,ok\n")
    (tmp_path / "results" / "runs" / "case" / "zz" / "run.json").unlink()
    with pytest.raises(SystemExit, match="shows 1 launches that are not in .*: of-earlier"):
        stored.manifest_of_run(tmp_path / "results", tmp_path / "reports")
    (tmp_path / "reports" / "runs.csv").write_text(f"{RUNS}micro,costs,,missing\n")
    with pytest.raises(SystemExit, match="1 planned launches were never made, the first of micro costs"):
        stored.manifest_of_run(tmp_path / "results", tmp_path / "reports")


def test_verdicts_of_other_launches_or_other_rules_are_not_stored(tmp_path: Path) -> None:
    results, reports = finished_run(tmp_path)
    judged_by = stored.read_state(results).judged_by
    write_claims(reports / "claims.json", [claim("reproduced", 0, ("of-earlier",))], judged_by)
    with pytest.raises(SystemExit, match="shows 1 launches that are not in .*: of-earlier"):
        stored.manifest_of_run(results, reports)
    write_claims(reports / "claims.json", [], judged_by | {"micro": "of-later"})
    with pytest.raises(SystemExit, match="verdicts were judged by other rules or claims than those of the run"):
        stored.manifest_of_run(results, reports)


def test_a_run_notes_what_judged_its_claims(root: Path) -> None:
    write_claims(root / "results" / "claims" / "alpha.ci.json", [], {"alpha": "a"})
    write_claims(root / "results" / "claims" / "micro.ci.json", [], {"micro": "m"})
    write_claims(root / "results" / "claims" / "micro.full.json", [], {"micro": "of another size"})
    assert steps.run(root, "ci", runner=Commands()).judged_by == {"alpha": "a", "micro": "m"}


def reference(folder: Path, rows: Sequence[Sequence[str]], made: Manifest | None) -> Path:
    with (folder / "das2016.runs.csv").open("w", newline="") as target:
        csv.writer(target).writerows([["launch", "evidence", "code", "machine"], *rows])
    if made is not None:
        one_run.write_manifest(folder, made)
    return folder


GOOD = ["aa", "measured", "d", "m"]


def test_the_statement_names_the_run_and_says_when_the_code_has_moved_on(tmp_path: Path) -> None:
    text = stored.statement(reference(tmp_path, [GOOD, ["", "", "", ""]], manifest()))
    assert text == (
        "One run, ended 2026-11-24: commit `cccccccccc`, machine `m`, 11 minutes; "
        "12 launches, 1 failed, 2 not runnable there; code `d` (measured)."
    )
    moved = stored.statement(reference(tmp_path, [GOOD], manifest(files={MODULE: "0" * 8})))
    assert moved == f"{text} **The code that its launches used has changed since.**"


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (["bb", "measured", "e", "m"], "measured launches of 2 versions of the code: 1 of d, 1 of e"),
        (["bb", "measured", "d", "n"], "machines m and n"),
        (["bb", "simulated", "e", "m"], "das2016 has launches of code e, run.json names another"),
    ],
)
def test_readme_and_pages_refuse_what_is_not_in_the_manifest(tmp_path: Path, row: list[str], why: str) -> None:
    with pytest.raises(SystemExit, match=why):
        stored.statement(reference(tmp_path, [GOOD, row], manifest()))


def test_the_statement_says_when_what_judges_has_moved_on(tmp_path: Path) -> None:
    text = stored.statement(reference(tmp_path, [GOOD], manifest(judged_by={"das2016": "earlier"})))
    assert text.endswith("code `d` (measured). **The rules or claims that judged it have changed since.**")


def test_a_stored_file_that_changed_came_or_went_is_refused(tmp_path: Path) -> None:
    (tmp_path / "das2016.verdicts.csv").write_text("id\n")
    (tmp_path / "records").mkdir()
    (tmp_path / "records" / "m.profile.json").write_text("{}")
    reference(tmp_path, [GOOD], manifest())
    stored.statement(tmp_path)
    (tmp_path / "das2016.verdicts.csv").write_text("id\nof another run\n")
    with pytest.raises(SystemExit, match=r"not one run: das2016.verdicts.csv is not as run.json has it"):
        stored.statement(tmp_path)
    (tmp_path / "das2016.verdicts.csv").write_text("id\n")
    (tmp_path / "micro.verdicts.csv").write_text("id\n")
    with pytest.raises(SystemExit, match=r"micro.verdicts.csv is not as run.json has it"):
        stored.statement(tmp_path)
    (tmp_path / "micro.verdicts.csv").unlink()
    (tmp_path / "records" / "m.profile.json").unlink()
    with pytest.raises(SystemExit, match=r"records/m.profile.json is not as run.json has it"):
        stored.statement(tmp_path)


def test_pages_are_built_of_the_stored_run_alone(tmp_path: Path) -> None:
    results, reports = finished_run(tmp_path)
    folder = tmp_path / "reference"
    folder.mkdir()
    assert stored.another_run(results, folder) == "", "a store without a manifest refuses no single run"
    made = stored.manifest_of_run(results, reports)
    one_run.write_manifest(folder, made)
    assert stored.another_run(results, folder) == ""
    one_run.write_manifest(folder, made.model_copy(update={"ended": "2026-11-25"}))
    assert stored.another_run(results, folder).endswith(
        "ended 2026-11-24; the stored run is of commit cccccccccc, ended 2026-11-25"
    )
    write_launch(results, "zz", machine="n")
    assert "launches of 2 machines" in stored.another_run(results, folder)
    archive.write(results, tmp_path / "run.tar.xz")
    with pytest.raises(SystemExit, match=r"run.tar.xz: not one run: launches of 2 machines"):
        archive.build_pages(tmp_path / "run.tar.xz")


def test_a_store_without_a_manifest_is_called_what_it_is(tmp_path: Path) -> None:
    text = stored.statement(reference(tmp_path, [GOOD, ["bb", "measured", "e", "m"]], None))
    assert text.startswith("**Not one run**: measured launches of 2 versions of the code")


def test_minutes_are_those_of_the_recorded_run_or_not_recorded_yet(tmp_path: Path) -> None:
    assert "| das2016 | not recorded yet | of 75 |" in stored.minutes_table(tmp_path)
    one_run.write_manifest(tmp_path, manifest())
    assert stored.minutes_table(tmp_path).splitlines()[2:] == [
        "| calibrate | 1.5 | of 75 |",
        "| das2016 | 9.0 | of 75 |",
        "| pages | 0.5 | of 75 |",
        "| all | 11.0 | 75 and those of later suites |",
    ]


def test_speed_says_whether_it_is_of_the_same_code(tmp_path: Path) -> None:
    bench = {"date": "2026-11-24", "code": "d", "machine": {"cpu": "AMD EPYC", "cores": 2}}
    assert "on 2 cores of an AMD EPYC" in stored.statement_of_speed(bench, tmp_path)
    assert "another version of the code" in stored.statement_of_speed(bench, tmp_path)
    one_run.write_manifest(tmp_path, manifest())
    assert "with the code of the reference run: `d`" in stored.statement_of_speed(bench, tmp_path)


def test_each_later_suite_states_its_share_of_the_reference_run() -> None:
    later = {folder.name for folder in list_suites(ROOT / "suites")} - shares.TODAY
    silent = [name for name in later if load_suite(ROOT / "suites" / name).reference_minutes is None]
    assert silent == [], "state reference_minutes in suite.yaml: docs/add_a_suite.md"


def test_the_stored_run_takes_no_longer_than_its_minutes() -> None:
    made = one_run.read_manifest(tables.REFERENCE)
    if made is not None:
        assert shares.own_min(made.minutes) <= shares.allowed_min(made.minutes) * shares.slowness(made.minutes)


def test_a_slower_machine_may_take_longer_by_what_its_calibration_takes_longer(tmp_path: Path) -> None:
    assert shares.slowness({}) == shares.slowness({"calibrate": 1.0}) == 1.0
    assert shares.slowness({"calibrate": 2 * shares.CALIBRATION_MIN, "micro": 30.0}) == 2.0
    slow = manifest(minutes={"calibrate": 2 * shares.CALIBRATION_MIN, "pages": 0.5})
    one_run.write_manifest(tmp_path, slow)
    last = stored.minutes_table(tmp_path).splitlines()[-1]
    assert last.endswith("calibration took 3.2 minutes in place of 1.62. Each share is 2.00 times as much there.")
    assert (
        steps._beyond("ho2018", steps.State(commit="", size=SIZE, minutes=dict(slow.minutes) | {"ho2018": 7.9})) == ""
    )
    beyond = steps._beyond("ho2018", steps.State(commit="", size=SIZE, minutes=dict(slow.minutes) | {"ho2018": 8.1}))
    assert beyond == ", its share is 8.0"


def test_experiments_that_came_to_an_older_suite_add_their_minutes() -> None:
    assert shares.added_min("validation") > 0 == shares.added_min("das2016") == shares.added_min("jin2016")
    assert shares.allowed_min(["micro", "validation"]) == shares.BUDGET_MIN + shares.added_min("validation")
    assert "of later experiments" in next(row for row in stored.minutes_table().splitlines() if "validation" in row)
