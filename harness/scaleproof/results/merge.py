"""Takes another machine's results folder in: what copying its directories does, with a look at every record first. All
of it or nothing."""

from __future__ import annotations

import filecmp
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from scaleproof.core.atomic_write import write_form
from scaleproof.launch.results_lock import locked
from scaleproof.record.stops import CaseStop, Stops
from scaleproof.record.store import Store
from scaleproof.spec.errors import SpecError

BESIDE = ("machines", "stops", "differences", "sniffs")
"""Folders that stand beside the records and are no product of them; tables and verdicts are made anew."""
_MOMENTS = ("measured_at", "fitted_at", "taken_at")


@dataclass(slots=True)
class Merged:
    """What a merge did, or would do."""

    new: list[Path] = field(default_factory=list)
    """Records, as <case>/<launch>."""
    same: int = 0
    damaged: list[str] = field(default_factory=list)
    """Lines on folders of the other side that are no records; they are left out."""
    beside: list[Path] = field(default_factory=list)
    """Files beside the records that are new or newer than ours, relative to the results folder."""
    ours: list[Path] = field(default_factory=list)
    """Files of which both sides have one, where ours stays."""


def merge(results: Path, other: Path, dry_run: bool = False) -> Merged:
    """Copy in what `other` has and `results` has not. SpecError, before anything is copied, where one launch has two
    contents."""
    _check(results, other)
    found, store = Merged(), Store(other)
    clashes = []
    for place in _launches(other):
        mine, theirs = results / "runs" / place, other / "runs" / place
        if mine.exists():
            found.same += 1
            clashes += [] if alike(mine, theirs) else [place]
        elif store.record(*place.parts) is not None:
            found.new.append(place)
    found.damaged = store.warnings
    if clashes:
        names = ", ".join(place.name for place in clashes[:6]) + (
            f" and {len(clashes) - 6} more" if len(clashes) > 6 else ""
        )
        raise SpecError(
            f"{other}: launch {names} has other content than in {results}: one was changed after it was written, "
            "or an id was drawn twice; "
            "nothing was merged"
        )
    with locked(results):
        _beside(results, other, found, dry_run)
        for place in [] if dry_run else found.new:
            _take(other / "runs" / place, results / "runs" / place, results / "staging" / place.name)
    return found


def alike(one: Path, other: Path) -> bool:
    """Whether two folders have the same files with the same bytes."""
    names = sorted(path.name for path in one.iterdir())
    return (
        names == sorted(path.name for path in other.iterdir())
        and filecmp.cmpfiles(one, other, names, shallow=False)[0] == names
    )


def _check(results: Path, other: Path) -> None:
    if not (other / "runs").is_dir():
        below = [path.parent for path in other.glob("*/runs")] if other.is_dir() else []
        hint = f"; did you mean {str(below[0])!r}?" if below else ""
        raise SpecError(f"{other}: no results folder, since it has no folder 'runs'{hint}")
    if results.resolve() == other.resolve():
        raise SpecError(f"{other}: is the results folder itself")


def _launches(results: Path) -> Iterator[Path]:
    for case in sorted(path for path in (results / "runs").iterdir() if path.is_dir()):
        yield from (launch.relative_to(results / "runs") for launch in sorted(case.iterdir()) if launch.is_dir())


def _take(source: Path, target: Path, draft: Path) -> None:
    """By one rename, like a record that is written here; times of the files stay."""
    draft.parent.mkdir(parents=True, exist_ok=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        shutil.copytree(source, draft)
        draft.rename(target)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _beside(results: Path, other: Path, found: Merged, dry_run: bool) -> None:
    for path in sorted(
        path
        for folder in BESIDE
        for path in (other / folder).rglob("*")
        if path.is_file() and not path.name.startswith(".")
    ):
        place = path.relative_to(other)
        mine = results / place
        if mine.exists() and filecmp.cmp(mine, path, shallow=False):
            continue
        stops = _both_stops(mine, path) if place.parts[0] == "stops" and mine.exists() else None
        if mine.exists() and stops is None and not _later(path, mine):
            found.ours.append(place)
            continue
        if stops is not None and mine.read_text() == stops.model_dump_json(indent=1) + "\n":
            continue
        found.beside.append(place)
        if not dry_run:
            _put(path, mine, stops)


def _put(source: Path, target: Path, stops: Stops | None) -> None:
    if stops is not None:
        write_form(target, stops)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    shutil.copyfile(source, draft)
    draft.rename(target)


def _later(path: Path, mine: Path) -> bool:
    """Whether a file says that it was measured after ours; files that say nothing of it do not replace ours."""
    moments = []
    for one in (path, mine):
        try:
            content = json.loads(one.read_bytes())
        except ValueError:
            return False
        moments.append(
            next((str(content[name]) for name in _MOMENTS if name in content), "") if isinstance(content, dict) else ""
        )
    return moments[0] > moments[1] != ""


def _both_stops(mine: Path, path: Path) -> Stops | None:
    """Of one experiment on one machine with one version of the code: each case with more repetitions. None where they
    are not of one kind."""
    try:
        ours, theirs = (Stops.model_validate_json(one.read_bytes()) for one in (mine, path))
    except ValueError:
        return None
    if (ours.machine, ours.code, ours.metric, ours.nbytes, ours.target) != (
        theirs.machine,
        theirs.code,
        theirs.metric,
        theirs.nbytes,
        theirs.target,
    ):
        return None
    cases: dict[str, CaseStop] = {case.case_id: case for case in ours.cases}
    for case in theirs.cases:
        if case.case_id not in cases or case.launches > cases[case.case_id].launches:
            cases[case.case_id] = case
    return ours.model_copy(update={"cases": tuple(cases.values())})
