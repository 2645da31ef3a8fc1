"""Makes the reference run: calibration, every suite at size smoke, the pages. It goes on where it was interrupted, and
notes what minutes each step took."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import psutil
from pydantic import BaseModel, ConfigDict

from scaleproof.claims.claims_file import read_claims
from scaleproof.core.atomic_write import write_form
from scaleproof.record.digest import machine_id
from scaleproof.spec.registry import nearest
from scaleproof.spec.suite import list_suites
from tools.reference import ROOT, SIZE
from tools.reference.one_run import facts
from tools.reference.shares import CALIBRATION, PAGES, allowed_min, limit_min, own_min, slowness

FIRST = ("micro", "validation")
"""Suites whose results others use: costs of messages, and labels of evidence."""
STATE = "reference_run.json"


class Step(NamedTuple):
    """A command with the name under which its minutes are noted."""

    name: str
    command: tuple[str, ...]


class State(BaseModel):
    """Of a reference run, in its results folder."""

    model_config = ConfigDict(extra="forbid")

    commit: str
    size: str
    minutes: dict[str, float] = {}
    done: list[str] = []
    ended: str = ""
    judged_by: dict[str, str] = {}  # by suite, the version of what judged its claims


Runner = Callable[[Sequence[str], Path], int]
"""Runs a command in a folder and returns its exit code."""


def suite_names(root: Path = ROOT) -> list[str]:
    """All suites, first those whose results others use."""
    names = [folder.name for folder in list_suites(root / "suites")]
    return [*(name for name in FIRST if name in names), *(name for name in names if name not in FIRST)]


def steps(names: Sequence[str], size: str, only: Sequence[str] = ()) -> list[Step]:
    """Everything that a reference run consists of: each suite up to its verdicts. The last step judges again what later
    suites label, and makes the pages. `only`: a trial has these suites and their pages."""
    config = ("--config", f"size={size}")
    suites = [
        Step(name, ("snakemake", f"results/claims/{name}.{size}.json", *config))
        for name in names
        if not only or name in only
    ]
    if only:
        return [*suites, Step(PAGES, ("scaleproof", "report", "--size", size))]
    return [
        Step(CALIBRATION, ("scaleproof", "calibrate", "--comparisons", "2")),
        *suites,
        Step(PAGES, ("snakemake", "all", *config)),
    ]


def run(root: Path = ROOT, size: str = SIZE, only: Sequence[str] = (), runner: Runner | None = None) -> State:
    """Every step that is not done. SystemExit with one line when the tree has changes, when results/ has launches of
    another run, or when a step fails. `only`: of these suites alone, for a trial."""
    commit, results = _clean_commit(root), root / "results"
    state = _state(results, commit, size)
    names = suite_names(root)
    _refuse_other_launches(results, commit, size, names)
    if unknown := sorted(set(only) - set(names)):
        raise SystemExit(f"no suite {unknown[0]!r}; {nearest(unknown[0], names)}")
    for step in steps(names, size, only):
        if step.name in state.done:
            continue
        code = _timed(step, root, results, state, runner or _run)
        print(f"{step.name}: {state.minutes[step.name]:.1f} minutes{_beyond(step.name, state)}", flush=True)
        if code:
            raise SystemExit(f"{step.name}: ended with code {code}; the same command goes on from here")
        state.done = [*(name for name in state.done if name != PAGES), step.name]  # older pages lack this step
        state.ended = datetime.now(UTC).isoformat(timespec="seconds")
        state.judged_by = _judged_by(results, size)
        write_form(results / STATE, state)
    print(f"reference run of {commit[:10]}: {sum(state.minutes.values()):.1f} minutes")
    allowed = allowed_min(state.minutes) * slowness(state.minutes)
    print(f"without later suites {own_min(state.minutes):.1f} of {allowed:.1f} minutes")
    trial = "a trial: its records and pages stay in results/ and reports/"
    kept = "`python -m tools.reference pack` stores it, `python -m tools.reference readme` shows it"
    print(trial if only else kept)
    return state


def read_state(results: Path) -> State:
    """What `run` noted. SystemExit where it is not finished."""
    path = results / STATE
    if not path.exists():
        raise SystemExit(f"{path}: missing; `python -m tools.reference run` makes a reference run")
    state = State.model_validate_json(path.read_bytes())
    if PAGES not in state.done:
        raise SystemExit(f"{path}: the run has not ended: `python -m tools.reference run` goes on")
    return state


def _judged_by(results: Path, size: str) -> dict[str, str]:
    judged: dict[str, str] = {}
    for path in sorted((results / "claims").glob(f"*.{size}.json")):
        judged |= read_claims(path).judged_by
    return judged


def _timed(step: Step, root: Path, results: Path, state: State, runner: Runner) -> int:
    """Run a step; its minutes add to those of interrupted tries. SystemExit with one line when it is interrupted."""
    began = time.monotonic()
    try:
        return runner(step.command, root)
    except KeyboardInterrupt:
        raise SystemExit(f"{step.name}: interrupted; the same command goes on from here") from None
    finally:
        minutes = state.minutes.get(step.name, 0.0) + (time.monotonic() - began) / 60
        state.minutes[step.name] = round(minutes, 2)
        write_form(results / STATE, state)


def _run(command: Sequence[str], root: Path) -> int:
    inside = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    process = subprocess.Popen(command, cwd=root, env=inside)
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return process.wait()
    finally:
        signal.signal(signal.SIGTERM, before)
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends an interrupted command and all that it started; launches are torn down and recorded."""
    if process.poll() is None:
        for child in psutil.Process().children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                child.terminate()
    process.wait()


def _beyond(name: str, state: State) -> str:
    limit = limit_min(name)
    if limit is None or state.minutes[name] <= limit * slowness(state.minutes):
        return ""
    return f", its share is {limit * slowness(state.minutes):.1f}"


def _clean_commit(root: Path) -> str:
    """The commit that is checked out. SystemExit where the tree differs from it."""
    changed = _git(root, "status", "--porcelain").splitlines()
    if changed:
        raise SystemExit(
            f"{root}: {len(changed)} files are not as committed, the first is {changed[0][3:]}; "
            "a reference run is of one commit: commit or stash them"
        )
    return _git(root, "rev-parse", "HEAD").strip()


def _git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{root}: {done.stderr.strip().splitlines()[0]}")
    return done.stdout


def _state(results: Path, commit: str, size: str) -> State:
    path = results / STATE
    if not path.exists():
        return State(commit=commit, size=size)
    try:
        state = State.model_validate(json.loads(path.read_bytes()))
    except ValueError:
        raise SystemExit(f"{path}: no state of a reference run; remove it") from None
    if (state.commit, state.size) != (commit, size):
        raise SystemExit(
            f"{path}: of commit {state.commit[:10]} and size {state.size}; a reference run is of one commit: "
            f"move {results.name}/runs and {STATE} away to begin anew"
        )
    return state


def _refuse_other_launches(results: Path, commit: str, size: str, suites: Sequence[str]) -> None:
    other = Counter(
        f"commit {launch.commit[:10] or 'none'}{' with changes' * launch.dirty}, size {launch.size}, "
        f"machine {launch.machine}"
        for launch in facts(results)
        if (launch.commit, launch.machine, launch.dirty) != (commit, machine_id(), False)
        or (launch.suite in suites and launch.size != size)
    )
    if other:
        named = ", ".join(f"{count} of {what}" for what, count in other.most_common(3))
        raise SystemExit(
            f"{results}: has {other.total()} launches of other runs: {named}; move the folder away, "
            "a reference run has no launch of another one"
        )
