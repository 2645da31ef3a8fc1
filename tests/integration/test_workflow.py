"""The workflow as a person calls it, with a stand-in for the `scaleproof` command that only notes how it was called."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SUITE = """\
suite: small
title: A suite
experiments:
  first:
    summary: One
    base: {program: transfer, sizes: [1 KiB]}
    arms: {tcp: {transport: tcp}}
    sizes:
      ci: {launches: 1, matrix: [{arms: [tcp]}]}
      smoke: {launches: 6, matrix: [{arms: [tcp]}]}
  second:
    summary: Two
    base: {program: transfer, sizes: [1 KiB]}
    arms: {shm: {transport: shm}}
    sizes:
      smoke: {launches: 6, matrix: [{arms: [shm]}]}
"""
COMMAND = """\
#!/bin/sh
echo "$*" >> calls
case "$1" in
    run) while [ $# -gt 1 ] && [ "$1" != --table ]; do shift; done
        test $# -eq 1 || test ${RUN_CODE:-0} -gt 1 || echo table > "$2"
        exit ${RUN_CODE:-0} ;;
    judge) echo '[]' > "results/claims/$2.$4.json" ;;
esac
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name in ("Snakefile", "environment.yml"):
        shutil.copy(ROOT / name, tmp_path)
    for name in ("workflows", "profiles"):
        shutil.copytree(ROOT / name, tmp_path / name)
    (tmp_path / "suites" / "small").mkdir(parents=True)
    (tmp_path / "suites" / "small" / "suite.yaml").write_text(SUITE)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "scaleproof").write_text(COMMAND)
    (tmp_path / "bin" / "scaleproof").chmod(0o755)
    return tmp_path


def snakemake(project: Path, *arguments: str, run_code: int = 0) -> subprocess.CompletedProcess[str]:
    env = {
        **os.environ,
        "PATH": f"{project / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "harness"),
        "RUN_CODE": str(run_code),
    }
    argv = [sys.executable, "-m", "snakemake", *arguments]
    return subprocess.run(argv, cwd=project, env=env, capture_output=True, text=True, timeout=120)


def calls(project: Path) -> list[str]:
    return (project / "calls").read_text().splitlines()


TABLE = "--table results/tables/small.{}.{}.parquet"


def test_a_suites_target_runs_judges_and_reports_and_does_nothing_twice(project):
    assert snakemake(project, "small").returncode == 0
    expected = [f"run small {name} --size smoke {TABLE.format(name, 'smoke')}" for name in ("first", "second")]
    assert sorted(calls(project)[:2]) == sorted(expected)
    ends = ["calibrate small --size smoke", "judge small --size smoke", "report --size smoke"]
    assert calls(project)[2:] == ends
    assert snakemake(project, "small").returncode == 0
    assert calls(project)[5:] == ["report --size smoke"]
    (project / "suites" / "small" / "programs").mkdir()
    (project / "suites" / "small" / "programs" / "own.py").write_text("")
    assert snakemake(project, "small").returncode == 0
    again = f"run small first --size smoke {TABLE.format('first', 'smoke')}"
    assert again in calls(project)[6:], "another program of the suite's own is another launch"


def test_several_targets_of_one_call_make_the_pages_once_after_the_verdicts_of_all(project: Path) -> None:
    shutil.copytree(project / "suites" / "small", project / "suites" / "other")
    suite = project / "suites" / "other" / "suite.yaml"
    suite.write_text(SUITE.replace("suite: small", "suite: other"))
    assert snakemake(project, "small", "other").returncode == 0
    assert {call for call in calls(project) if call.startswith("judge")} == {
        f"judge {name} --size smoke" for name in ("small", "other")
    }
    assert [call for call in calls(project) if call.startswith("report")] == ["report --size smoke"]
    assert calls(project)[-1] == "report --size smoke"
    assert snakemake(project, "small").returncode == 0
    assert calls(project)[-1] == "report --size smoke" and calls(project)[-2] == "report --size smoke"


def test_new_verdicts_of_suite_validation_let_others_be_judged_anew_and_nothing_run(project):
    assert snakemake(project, "small").returncode == 0
    before = len(calls(project))
    (project / "results/claims/validation.ci.json").write_text("size ci has no verdicts")
    assert snakemake(project, "small").returncode == 0
    assert calls(project)[before:] == ["report --size smoke"]
    (project / "results/claims/validation.smoke.json").write_text("another")
    assert snakemake(project, "small").returncode == 0
    assert calls(project)[before + 1 :] == ["judge small --size smoke", "report --size smoke"]


def test_a_size_runs_only_the_experiments_that_have_it(project):
    assert snakemake(project, "--config", "size=ci").returncode == 0
    runs = [call for call in calls(project) if call.startswith("run")]
    assert runs == [f"run small first --size ci {TABLE.format('first', 'ci')}"]


def test_a_failed_launch_does_not_stop_the_report(project):
    assert snakemake(project, "--config", "size=ci", run_code=1).returncode == 0
    assert calls(project)[-1] == "report --size ci"


@pytest.mark.parametrize("code", [2, 130])
def test_a_mistake_or_an_interruption_stops_it(project, code):
    assert snakemake(project, "--config", "size=ci", run_code=code).returncode == 1
    assert calls(project) == [f"run small first --size ci {TABLE.format('first', 'ci')}"]
    assert not list(project.glob("results/tables/*"))


def test_a_timing_job_takes_the_whole_machine(project):
    output = snakemake(project, "-n").stdout
    jobs = output.split("\nrule ")[1:]
    assert {job.partition(":")[0] for job in jobs} == {"run", "floors", "judge", "all"}
    for job in jobs:
        assert ("machine=100" in job) == job.startswith(("run:", "floors:")), job


def test_launches_that_no_claim_times_leave_half_of_the_machine(project: Path) -> None:
    suite = project / "suites" / "small" / "suite.yaml"
    alone = "{program: train, ranks: 1, strategy: local_only, workload: cd_dnn, minibatch: 8, steps: 2}"
    text = suite.read_text().replace("    summary:", "    timed: false\n    summary:")
    text = text.replace("{program: transfer, sizes: [1 KiB]}", alone)
    suite.write_text(text.replace("{transport: tcp}", "{}").replace("{transport: shm}", "{}"))
    jobs = [job for job in snakemake(project, "-n").stdout.split("\nrule ")[1:] if job.startswith("run:")]
    assert jobs and all("machine=50" in job for job in jobs)


def test_predictions_leave_half_of_the_machine(project: Path) -> None:
    suite = project / "suites" / "small" / "suite.yaml"
    suite.write_text(suite.read_text().replace("{program: transfer, ", "{program: transfer, fabric: simulated, "))
    jobs = [job for job in snakemake(project, "-n").stdout.split("\nrule ")[1:] if job.startswith("run:")]
    assert jobs and all("machine=50" in job for job in jobs)


def test_an_unknown_size_is_named(project):
    ended = snakemake(project, "-n", "--config", "size=big")
    assert ended.returncode == 1
    assert "no size 'big'; known: ci, smoke, small, full" in ended.stdout + ended.stderr


def test_campaigns_of_an_experiment_are_calls_of_run_one_after_the_other_and_the_table_comes_last(
    project: Path,
) -> None:
    suite = project / "suites" / "small" / "suite.yaml"
    suite.write_text(
        SUITE.replace(
            "smoke: {launches: 6, matrix: [{arms: [tcp]}]}",
            "smoke: {launches: 6, campaigns: 3, matrix: [{arms: [tcp]}]}",
        )
    )
    assert snakemake(project, "small").returncode == 0
    first = [call for call in calls(project) if " first " in call]
    assert first == [
        *(f"run small first --size smoke --campaign {number}" for number in range(2)),
        f"run small first --size smoke --campaign 2 {TABLE.format('first', 'smoke')}",
    ]
    assert f"run small second --size smoke {TABLE.format('second', 'smoke')}" in calls(project)


EXTRAS = """\
import os, sys
with open("calls", "a") as file:
    file.write(" ".join(["setup", *sys.argv[1:]]) + "\\n")
sys.exit(int(os.environ["SETUP_CODE"]))
"""


@pytest.mark.parametrize("code", [0, 1])
def test_extras_of_a_suite_are_installed_before_it_runs_and_it_runs_without_them(
    project: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    (project / "tools" / "setup").mkdir(parents=True)
    (project / "tools" / "setup" / "__main__.py").write_text(EXTRAS)
    (project / "suites" / "small" / "extras.toml").touch()
    monkeypatch.setenv("SETUP_CODE", str(code))
    snakemake(project, "small", "-n")
    assert not (project / "calls").exists(), "a dry run installs nothing"
    done = snakemake(project, "small")
    assert done.returncode == 0 and calls(project)[0] == "setup extras --only small"
    assert ("small runs without these packages" in done.stderr) == bool(code)
    assert [call.split()[0] for call in calls(project)[1:3]] == ["run", "run"]
    before = len(calls(project))
    snakemake(project, "small")
    assert calls(project)[before:] == ["report --size smoke"], "nothing is to run, and nothing is installed"
