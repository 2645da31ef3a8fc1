"""Converts a results folder of version 0.1: options of plugins are nested in each case, so case ids change. The new
folder is written beside the old one and then renamed, so that an interruption loses nothing."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scaleproof.core.atomic_write import write_form
from scaleproof.core.record_schema import EARLIER_SCHEMA_VERSION, SCHEMA_VERSION, Record
from scaleproof.launch.results_lock import locked
from scaleproof.record.read import UNREADABLE, reason
from scaleproof.record.stops import Stops
from scaleproof.record.write import RUN
from scaleproof.spec.case import AnyCase, parse_case
from scaleproof.spec.choice import nested
from scaleproof.spec.earlier_form import converted
from scaleproof.spec.errors import SpecError
from scaleproof.spec.programs import programs_digest, programs_folder

CONVERTED = ("runs", "stops")
DERIVED = ("tables", "claims", "index", "staging", ".lock")
"""Not copied: other commands make them from the records, or they belong to a running process."""
Watch = Callable[[Sequence[Path]], Iterable[Path]]
"""Yields the folders again, one by one, to show the progress."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A record that was copied as it is, in its earlier form."""

    folder: Path
    why: str


@dataclass(frozen=True, slots=True)
class Programs:
    """Digest of a suite's own programs in its earlier records, and today's digest."""

    suite: str
    earlier: str
    today: str
    folder: Path


@dataclass(slots=True)
class Migrated:
    """The result of a migration; counts are of records."""

    target: Path
    backup: Path | None = None
    converted: int = 0
    current: int = 0
    skipped: list[Skipped] = field(default_factory=list)
    programs: list[Programs] = field(default_factory=list)
    unknown_suites: Counter[str] = field(default_factory=Counter)
    case_ids: dict[str, str] = field(default_factory=dict)


def migrate(folder: Path, to: Path | None, suites: Mapping[str, Path], watch: Watch = iter) -> Migrated:
    """Convert the records of a results folder, in place or into the new folder `to`. `suites`: folders of suites by
    name.

    In place, the old folder is kept as `<name>.before-migration`. A folder without records of version 0.1 is not
    changed."""
    folder = folder.resolve()
    target = folder if to is None else to.absolute()
    backup = folder.with_name(f"{folder.name}.before-migration") if to is None else None
    draft = target.with_name(f".{target.name}.migration")
    if backup is not None and backup.is_dir() and draft.is_dir() and not folder.exists():
        draft.rename(folder)  # a migration was interrupted between its two renames
    _check(folder, target, backup)
    with ExitStack() as stack:
        if to is None:
            stack.enter_context(locked(folder))
        launches = list(_launches(folder / "runs"))
        earlier = {path: form for path in launches if (form := _earlier_form(path)) is not None}
        migrated = Migrated(target, backup, current=len(launches) - len(earlier))
        if not earlier and to is None:
            return migrated
        if backup is not None and backup.exists():
            raise SpecError(f"{backup}: exists already, from an earlier migration; remove it, or use --to NEW")
        migrated.programs = _programs(earlier.values(), suites)
        shutil.rmtree(draft, ignore_errors=True)
        try:
            _fill(draft, folder, launches, earlier, migrated, suites, watch)
            if migrated.converted or backup is None:
                os.sync()
                _replace(folder, backup, draft, target)
        finally:
            if folder.exists():  # else the draft is the only copy under its name
                shutil.rmtree(draft, ignore_errors=True)
    return migrated


def _check(folder: Path, target: Path, backup: Path | None) -> None:
    if not (folder / "runs").is_dir():
        raise SpecError(f"{folder}: no results folder, since it has no folder 'runs'")
    if backup is None and (target.exists() or target.is_relative_to(folder)):
        raise SpecError(f"{target}: exists already, or is inside of {folder}; --to takes a new folder beside it")


def _launches(runs: Path) -> Iterator[Path]:
    for case in sorted(path for path in runs.iterdir() if path.is_dir()):
        yield from sorted(path for path in case.iterdir() if path.is_dir())


def _earlier_form(launch: Path) -> dict[str, Any] | None:
    """The run.json of a launch's folder if version 0.1 wrote it; None for a newer one, or for no JSON."""
    try:
        form = json.loads((launch / RUN).read_bytes())
    except (OSError, ValueError):
        return None
    is_earlier = isinstance(form, dict) and form.get("schema_version") == EARLIER_SCHEMA_VERSION
    return form if is_earlier and isinstance(form.get("case"), dict) else None


def _programs(forms: Iterable[Mapping[str, Any]], suites: Mapping[str, Path]) -> list[Programs]:
    """For each suite the digest of its programs in its latest record, since only imports changed in them after it.
    Records with another digest ran earlier programs: those are other cases."""
    latest: dict[str, tuple[str, str]] = {}
    for form in forms:
        suite, source = form["case"].get("suite"), form["case"].get("source")
        if source and suite in suites:
            latest[suite] = max(latest.get(suite, ("", "")), (str(form.get("started_at")), source))
    folders = {suite: programs_folder(suites[suite]) for suite in latest}
    return [
        Programs(suite, source, programs_digest(folders[suite]), folders[suite])
        for suite, (_, source) in sorted(latest.items())
        if folders[suite].is_dir()
    ]


def _fill(
    draft: Path,
    folder: Path,
    launches: Sequence[Path],
    earlier: Mapping[Path, dict[str, Any]],
    migrated: Migrated,
    suites: Mapping[str, Path],
    watch: Watch,
) -> None:
    sources = {(programs.suite, programs.earlier): programs.today for programs in migrated.programs}
    (draft / "runs").mkdir(parents=True)
    for launch in watch(launches):
        name = launch.relative_to(folder)
        form = earlier.get(launch)
        if form is None:
            _copy(launch, draft / name)
            continue
        try:
            record = converted_record(form, sources, launch)
            new = draft / "runs" / record.case_id / record.launch
            if new.exists():
                raise ValueError("another record of its case has the same launch id")
        except UNREADABLE as error:
            migrated.skipped.append(Skipped(name, reason(error)))
            _copy(launch, draft / name)
            continue
        _copy(launch, new, leave_out=(RUN,))
        write_form(new / RUN, record)
        migrated.converted += 1
        migrated.case_ids[form["case_id"]] = record.case_id
        if form["case"].get("source") and record.case.suite not in suites:
            migrated.unknown_suites[record.case.suite] += 1
    for path in sorted(folder.iterdir()):
        if path.name not in (*CONVERTED, *DERIVED):
            _copy(path, draft / path.name)
    for path in sorted((folder / "stops").glob("*")):
        _convert_stops(path, draft / "stops" / path.name, migrated.case_ids)


def converted_record(form: Mapping[str, Any], sources: Mapping[tuple[str, str], str], folder: Path) -> Record:
    """The record of a run.json of version 0.1 in today's form; ValueError if it cannot be converted. `sources`: today's
    digest of a suite's own programs, by suite and earlier digest."""
    if (form.get("case_id"), form.get("launch")) != (folder.parent.name, folder.name):
        raise ValueError("it names another case or launch than its folder")
    case = _converted_case(form["case"], sources)
    command = [case.case_id if argument == form["case_id"] else argument for argument in form["command"]]
    changes = {"schema_version": SCHEMA_VERSION, "case": case, "case_id": case.case_id, "command": command}
    return Record.model_validate({**form, **changes})


def _converted_case(values: Mapping[str, Any], sources: Mapping[tuple[str, str], str]) -> AnyCase:
    case = nested(converted(values), lenient=True)
    if case.get("source"):
        case["source"] = sources.get((case["suite"], case["source"]), case["source"])
    return parse_case(case)


def _convert_stops(path: Path, target: Path, case_ids: Mapping[str, str]) -> None:
    try:
        stops = Stops.model_validate_json(path.read_bytes())
    except UNREADABLE:
        _copy(path, target)
        return
    cases = [case.model_copy(update={"case_id": case_ids.get(case.case_id, case.case_id)}) for case in stops.cases]
    write_form(target, stops.model_copy(update={"cases": tuple(cases)}))


def _copy(source: Path, target: Path, leave_out: Sequence[str] = ()) -> None:
    """Copy a file or a folder. Files become hard links if the file system has them, since no file is ever changed in
    place."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_symlink():
        target.symlink_to(os.readlink(source))
    elif source.is_dir():
        left_out = shutil.ignore_patterns(*leave_out)
        shutil.copytree(source, target, symlinks=True, ignore=left_out, copy_function=_link)
    else:
        _link(source, target)


def _link(source: str | Path, target: str | Path) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system, or one without links
        shutil.copy2(source, target)


def _replace(folder: Path, backup: Path | None, draft: Path, target: Path) -> None:
    if backup is not None:
        try:
            folder.rename(backup)
        except OSError as error:
            raise SpecError(f"{folder}: cannot be renamed ({error.strerror}); --to NEW makes a new folder") from None
    draft.rename(target)
