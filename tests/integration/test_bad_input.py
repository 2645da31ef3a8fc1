"""A person's mistake, on the real command: one line on stderr, exit code 2, no traceback, nothing written."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from scaleproof.launch.results_lock import locked
from scaleproof.record.store import Store
from scaleproof.spec.errors import SpecError
from tests.integration.launches import assert_nothing_left
from tests.waiting import wait_until

ROOT = Path(__file__).parents[2]
SUITE = """\
suite: x
title: A suite
experiments:
  speed:
    summary: Two arms
    base: {program: collective, sizes: [8, 1 KiB], iterations: 2, ranks: 2}
    arms:
      tcp: {transport: tcp, collective: ring}
      gloo: {transport: gloo}
    sizes:
      smoke: {launches: 2, matrix: [{arms: [tcp, gloo]}]}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A working directory with one suite."""
    (tmp_path / "suites" / "x").mkdir(parents=True)
    (tmp_path / "suites" / "x" / "suite.yaml").write_text(SUITE)
    return tmp_path


def scaleproof(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(ROOT / "harness"), **environment}
    return subprocess.run(
        [sys.executable, "-m", "scaleproof", *arguments],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
    )


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


COMMANDS = [
    (["run", "y"], "unknown suite 'y'; known: x (looked in suites)"),
    (["run", "./y"], "./y: no such folder"),
    (["run", "suites"], "unknown suite 'suites'; known: x (looked in suites)"),
    (["run", "x", "sped"], "suite 'x' has no experiment 'sped'; did you mean 'speed'?"),
    (["run", "x", "speed", "--size", "smok"], "unknown size 'smok'; did you mean 'smoke'?"),
    (["run", "x", "speed", "--size", "full"], "experiment 'speed' has no size 'full'; known: smoke"),
    (["run", "x", "--size", "full"], "suite 'x' has no experiment at size 'full'"),
    (["run", "x", "--case", "zz"], "no launch fits --case zz;"),
    (["run", "x", "--launch", "2"], "no launch fits --launch 2;"),
    (["run", "x", "--launch", "-1"], "no launch fits --launch -1;"),
    (
        ["run", "x", "--launch", "one"],
        "scaleproof run: argument --launch: invalid int value: 'one'; see 'scaleproof run --help'",
    ),
    (["run", "x", "--dryrun"], "scaleproof run: unknown argument '--dryrun'; did you mean '--dry-run'?"),
    (["run"], "scaleproof run: the following arguments are required: SUITE; see 'scaleproof run --help'"),
    (["rum"], "scaleproof: unknown command 'rum'; did you mean 'run'?"),
    ([], "scaleproof: the following arguments are required: COMMAND; see 'scaleproof --help'"),
    (["collect", "x", "sped"], "suite 'x' has no experiment 'sped'; did you mean 'speed'?"),
    (["judge", "y"], "unknown suite 'y'; known: x (looked in suites)"),
    (["report", "--size", "smal"], "unknown size 'smal'; did you mean 'small'?"),
    (["show", "12ab"], "no launch '12ab' in results/runs"),
    (["show", "../.."], "no launch '../..' in results/runs"),
    (["init", "suite", "x"], "suites/x: exists already"),
    (["init", "suite", "My Suite"], "'My Suite' is no name for a suite;"),
    (["list", "y"], "unknown suite 'y'; known: x (looked in suites)"),
]


@pytest.mark.parametrize(
    ("arguments", "message"), COMMANDS, ids=[" ".join(arguments) or "nothing" for arguments, _ in COMMANDS]
)
def test_a_wrong_command_is_one_line_and_writes_nothing(folder: Path, arguments: list[str], message: str) -> None:
    before = files(folder)
    done = scaleproof(folder, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(message) and done.stderr.count("\n") == 1
    assert files(folder) == before


FILES = [
    (
        "transport: tcp",
        "transport: tpc",
        "suites/x/suite.yaml:8: experiments.speed.arms.tcp.transport: unknown transport 'tpc'; did you mean 'tcp'?",
    ),
    (
        "iterations: 2",
        "iteration: 2",
        "suites/x/suite.yaml:6: experiments.speed.base.iteration: unknown key; did you mean 'iterations'?",
    ),
    (
        "ranks: 2",
        "ranks: 0",
        "suites/x/suite.yaml:6: experiments.speed.base.ranks: 0 is not allowed; it must be more than 0",
    ),
    (
        "arms: [tcp, gloo]",
        "arms: []",
        "suites/x/suite.yaml:11: experiments.speed.sizes.smoke.matrix[0].arms: empty; give at least one",
    ),
    ("title: A suite", "title: [", "suites/x/suite.yaml:4: not valid YAML: "),
]


def test_run_writes_the_table_of_one_experiment_only(folder: Path) -> None:
    second = SUITE.partition("experiments:\n")[2].replace("speed:", "more:")
    (folder / "suites/x/suite.yaml").write_text(SUITE + second)
    before = files(folder)
    done = scaleproof(folder, "run", "x", "--table", "t.parquet")
    assert done.returncode == 2 and files(folder) == before
    assert done.stderr == "--table is the table of one experiment; name it after the suite\n"


WRONG = [(["run", "x"], *mistake) for mistake in FILES] + [
    (command, *FILES[0])
    for command in (["run", "x", "--dry-run"], ["collect", "x", "speed"], ["judge", "x"], ["report"], ["list"])
]


@pytest.mark.parametrize(
    ("command", "right", "wrong", "message"),
    WRONG,
    ids=[f"{' '.join(command)}: {wrong}" for command, _, wrong, _ in WRONG],
)
def test_a_wrong_suite_file_is_one_line_for_every_command(
    folder: Path, command: list[str], right: str, wrong: str, message: str
) -> None:
    (folder / "suites/x/suite.yaml").write_text(SUITE.replace(right, wrong, 1))
    before = files(folder)
    done = scaleproof(folder, *command)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(message) and done.stderr.count("\n") == 1
    assert files(folder) == before


def test_a_dry_run_lists_cases_and_writes_nothing(folder: Path) -> None:
    before = files(folder)
    done = scaleproof(folder, "run", "x", "--dry-run")
    assert (done.returncode, done.stderr) == (0, "")
    assert "2 cases, 4 launches" in done.stdout and "formula" in done.stdout
    assert files(folder) == before


def test_results_that_cannot_be_written_are_one_line(folder: Path) -> None:
    (folder / "results").write_text("a file, not a folder")
    done = scaleproof(folder, "run", "x")
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "results" in done.stderr


def test_a_closed_pipe_is_no_traceback(folder: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    process = subprocess.Popen(
        [sys.executable, "-m", "scaleproof", "run", "x", "--dry-run"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT / "harness")},
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(writing)
    assert process.communicate(timeout=60)[1] == ""
    assert process.returncode == 141


def test_help_comes_at_once(folder: Path) -> None:
    """No command imports anything heavy to say what it is."""
    modules = "import sys, scaleproof.cli; scaleproof.cli.build_parser(); print(*sorted(sys.modules))"
    env = {**os.environ, "PYTHONPATH": str(ROOT / "harness")}
    loaded = set(
        subprocess.run(
            [sys.executable, "-c", modules], env=env, capture_output=True, text=True, check=True
        ).stdout.split()
    )
    assert not loaded & {"pydantic", "numpy", "yaml", "rich", "pandas", "torch", "psutil"}
    assert scaleproof(folder, "--help").returncode == 0


def test_a_run_ends_with_0_and_is_not_repeated(folder: Path) -> None:
    done = scaleproof(folder, "run", "x", "--launch", "0")
    assert done.returncode == 0 and "2 done, 0 failed" in done.stdout
    again = scaleproof(folder, "run", "x", "--launch", "0")
    assert again.returncode == 0 and "2 finished before, 0 done" in again.stdout
    assert "1 earlier launches" in scaleproof(folder, "run", "x", "--dry-run").stdout
    launch = next((folder / "results/runs").glob("*/*")).name
    show = scaleproof(folder, "show", launch[:6])
    assert (
        show.returncode == 0
        and f"launch {launch}: ok" in show.stdout
        and "scaleproof run x speed --size smoke --case" in show.stdout
    )
    log = scaleproof(folder, "show", launch, "--log", "7")
    assert log.returncode == 2 and "has no log of rank 7; it has those of: 0, 1" in log.stderr


def test_a_launch_that_fails_ends_the_command_with_1(folder: Path) -> None:
    text = SUITE.replace("arms: [tcp, gloo]", "arms: [tcp]").replace("base:", "deadline_s: 0.01\n    base:")
    (folder / "suites/x/suite.yaml").write_text(text)
    done = scaleproof(folder, "run", "x", "--launch", "0")
    assert done.returncode == 1 and "1 failed" in done.stdout and "deadline" in done.stderr


def test_ctrl_c_ends_with_130_and_leaves_nothing_unfinished(folder: Path) -> None:
    (folder / "suites/x/suite.yaml").write_text(SUITE.replace("launches: 2", "launches: 50"))
    argv = [sys.executable, "-m", "scaleproof", "run", "x"]
    # A run in the background inherits that Ctrl-C is ignored, and passes it on unless it has a handler of its own.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen(
        argv,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT / "harness")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until(lambda: list((folder / "results").glob("runs/*/*/run.json")), "a first record")
    process.send_signal(signal.SIGINT)
    printed = process.communicate(timeout=60)[1]
    assert process.returncode == 130 and printed.endswith("interrupted\n") and "Traceback" not in printed
    assert_nothing_left(folder / "results", [record.launch for record in Store(folder / "results").records()])


def test_supervisors_of_launches_that_no_claim_times_share_a_folder_and_keep_others_out(tmp_path: Path) -> None:
    held = f"another scaleproof .pid {os.getpid()} .*is using"
    with locked(tmp_path, shared=True), locked(tmp_path, shared=True), pytest.raises(SpecError, match=held):
        locked(tmp_path).__enter__()
    with locked(tmp_path), pytest.raises(SpecError, match="is using"), locked(tmp_path, shared=True):
        pass


def test_a_running_supervisor_keeps_others_out(folder: Path) -> None:
    import fcntl

    (folder / "results").mkdir()
    with (folder / "results/.lock").open("w") as lock:
        lock.write("4711")
        lock.flush()
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = scaleproof(folder, "run", "x")
    assert (done.returncode, done.stderr) == (
        2,
        f"another scaleproof (pid 4711) is using {folder.resolve() / 'results'}\n",
    )
