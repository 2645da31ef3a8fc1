"""Merges another machine's results folder into this one. Every record is checked before the first one is copied: all of
them are merged, or none."""

from __future__ import annotations

import filecmp
import json
import os
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from scaleproof.core.atomic_write import write_form
from scaleproof.core.campaign import Campaign
from scaleproof.launch.results_lock import locked
from scaleproof.record.stops import CaseStop, Stops
from scaleproof.record.store import Store
from scaleproof.spec.errors import SpecError

BESIDE_RECORDS = ("machines", "stops", "differences", "sniffs")
"""Folders with results of their own. Tables and verdicts are left out: they are made from the records."""
_MOMENTS = ("measured_at", "fitted_at", "taken_at")
"""Keys under which files say when they were measured."""


@dataclass(slots=True)
class Merged:
    """The result of a merge, or of a dry run."""

    new: list[Path] = field(default_factory=list)
    """Copied records, as <case>/<launch>."""
    same: int = 0
    damaged: list[str] = field(default_factory=list)
    """Lines on folders in the other results folder that are no records; they are not copied."""
    beside: list[Path] = field(default_factory=list)
    """Other files that are new or newer than ours, relative to the results folder."""
    ours: list[Path] = field(default_factory=list)
    """Files that differ, of which ours is kept."""
    campaigns: list[str] = field(default_factory=list)
    """Experiments that have a further campaign now, with its number in the plan."""


def merge(results: Path, other: Path, dry_run: bool = False) -> Merged:
    """Copy what only `other` has into `results`. SpecError, before anything is copied, if a launch has different files
    in the two folders."""
    _check(results, other)
    merged, store = Merged(), Store(other)
    clashes = []
    for launch in _launches(other):
        ours, theirs = results / "runs" / launch, other / "runs" / launch
        if ours.exists():
            merged.same += 1
            clashes += [] if alike(ours, theirs) else [launch]
        elif store.record(*launch.parts) is not None:
            merged.new.append(launch)
    merged.damaged = store.warnings
    if clashes:
        names = ", ".join(launch.name for launch in clashes[:6]) + (
            f" and {len(clashes) - 6} more" if len(clashes) > 6 else ""
        )
        raise SpecError(
            f"{other}: launch {names} has other content than in {results}: one was changed after it was written, "
            "or an id was drawn twice; nothing was merged"
        )
    merged.campaigns = _further_campaigns(results, other, merged.new)
    with locked(results):
        _merge_files(results, other, merged, dry_run)
        for launch in [] if dry_run else merged.new:
            _copy_record(other / "runs" / launch, results / "runs" / launch, results / "staging" / launch.name)
    return merged


def _further_campaigns(results: Path, other: Path, new: Sequence[Path]) -> list[str]:
    """Of experiments that `results` has launches of: the campaigns that only `other` has."""
    ours, theirs = Store(results), Store(other)
    campaigns = dict[str, set[Campaign]]()
    for case_id in sorted({launch.parent.name for launch in new}):
        known = {record.of_campaign for record in ours.records(case_id)}
        for record in theirs.records(case_id) if known else ():
            if record.of_campaign not in known:
                name = f"{record.case.suite} {record.case.experiment}"
                campaigns.setdefault(name, set()).add(record.of_campaign)
    calls = Counter((name, campaign.number) for name, further in campaigns.items() for campaign in further)
    return [
        f"{name} {number}" + (f" ({count} calls of `run`)" if count > 1 else "")
        for (name, number), count in sorted(calls.items())
    ]


def alike(folder: Path, other: Path) -> bool:
    """Whether two folders have the same files with the same bytes."""
    names = sorted(path.name for path in folder.iterdir())
    return (
        names == sorted(path.name for path in other.iterdir())
        and filecmp.cmpfiles(folder, other, names, shallow=False)[0] == names
    )


def _check(results: Path, other: Path) -> None:
    if not (other / "runs").is_dir():
        below = [path.parent for path in other.glob("*/runs")] if other.is_dir() else []
        advice = f"; did you mean {str(below[0])!r}?" if below else ""
        raise SpecError(f"{other}: no results folder, since it has no folder 'runs'{advice}")
    if results.resolve() == other.resolve():
        raise SpecError(f"{other}: is the results folder itself")


def _launches(results: Path) -> Iterator[Path]:
    for case in sorted(path for path in (results / "runs").iterdir() if path.is_dir()):
        yield from (launch.relative_to(results / "runs") for launch in sorted(case.iterdir()) if launch.is_dir())


def _copy_record(source: Path, target: Path, draft: Path) -> None:
    """Copy a record by one rename, as new records are written; times of the files are kept."""
    draft.parent.mkdir(parents=True, exist_ok=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        shutil.copytree(source, draft)
        draft.rename(target)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _merge_files(results: Path, other: Path, merged: Merged, dry_run: bool) -> None:
    for path in sorted(
        path
        for folder in BESIDE_RECORDS
        for path in (other / folder).rglob("*")
        if path.is_file() and not path.name.startswith(".")
    ):
        name = path.relative_to(other)
        ours = results / name
        if ours.exists() and filecmp.cmp(ours, path, shallow=False):
            continue
        stops = _merged_stops(ours, path) if name.parts[0] == "stops" and ours.exists() else None
        if ours.exists() and stops is None and not _is_later(path, ours):
            merged.ours.append(name)
            continue
        if stops is not None and ours.read_text() == stops.model_dump_json(indent=1) + "\n":
            continue
        merged.beside.append(name)
        if not dry_run:
            _write_file(path, ours, stops)


def _write_file(source: Path, target: Path, stops: Stops | None) -> None:
    if stops is not None:
        write_form(target, stops)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    shutil.copyfile(source, draft)
    draft.rename(target)


def _is_later(path: Path, ours: Path) -> bool:
    """Whether a file says that it was measured after ours; a file without such a time does not replace ours."""
    moments = []
    for file in (path, ours):
        try:
            content = json.loads(file.read_bytes())
        except ValueError:
            return False
        moments.append(
            next((str(content[name]) for name in _MOMENTS if name in content), "") if isinstance(content, dict) else ""
        )
    return moments[0] > moments[1] != ""


def _merged_stops(our_path: Path, their_path: Path) -> Stops | None:
    """The larger number of repetitions of each case in each campaign. None if the files are not of the same experiment,
    machine, code and stopping rule."""
    try:
        ours, theirs = (Stops.model_validate_json(file.read_bytes()) for file in (our_path, their_path))
    except ValueError:
        return None
    rules = [(each.machine, each.code, each.metric, each.nbytes, each.target, each.minutes) for each in (ours, theirs)]
    if rules[0] != rules[1]:
        return None
    cases: dict[tuple[int, str], CaseStop] = {(case.campaign, case.case_id): case for case in ours.cases}
    for case in theirs.cases:
        key = case.campaign, case.case_id
        if key not in cases or case.launches > cases[key].launches:
            cases[key] = case
    claims = {(claim.campaign, claim.claim): claim for claim in ours.claims}
    for claim in theirs.claims:
        key = claim.campaign, claim.claim
        if key not in claims or claim.launches > claims[key].launches:
            claims[key] = claim
    return ours.model_copy(update={"cases": tuple(cases.values()), "claims": tuple(claims.values())})
