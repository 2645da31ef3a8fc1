"""What is stored of the reference run, and what README and pages say of it."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from scaleproof.claims.claims_file import read_claims
from scaleproof.record.table import MISSING
from tools.reference import REFERENCE, SIZE
from tools.reference.one_run import FILE, Manifest, digests, facts, manifest_of, mixed_codes, mixture, read_manifest
from tools.reference.shares import (
    BUDGET_MIN,
    CALIBRATION,
    CALIBRATION_MIN,
    PAGES,
    TODAY,
    added_min,
    limit_min,
    slowness,
)
from tools.reference.steps import STATE, read_state, suite_names

RECORDED_LATER = "not recorded yet"


def manifest_of_run(results: Path, reports: Path) -> Manifest:
    """The manifest of the run in a results folder. SystemExit with one line where it is not finished, is no single run,
    or where its report shows launches that are not in it."""
    state, launches = read_state(results), facts(results)
    if state.size != SIZE:
        raise SystemExit(f"{results / STATE}: a run of size {state.size}; the reference run is of size {SIZE}")
    planned = _rows(reports / "runs.csv")
    if missing := [row for row in planned if row["status"] == MISSING]:
        raise SystemExit(
            f"not a whole run: {len(missing)} planned launches were never made, the first of {missing[0]['suite']} "
            f"{missing[0]['experiment']}"
        )
    statuses = dict(sorted(Counter(row["status"] for row in planned).items()))
    claims = read_claims(reports / "claims.json")
    planning = {row["suite"] for row in planned}
    manifest = manifest_of(launches, suite_names(), planning, statuses, state.minutes, state.ended, claims.judged_by)
    if manifest.commit != state.commit:
        raise SystemExit(f"not one run: launches of commit {manifest.commit[:10]}, but {STATE} of {state.commit[:10]}")
    here = {launch.name.split()[-1] for launch in launches}
    shown = {row["launch"] for row in planned if row["launch"]}
    shown |= {launch for claim in claims.claims for launch in claim.runs}
    if strange := sorted(shown - here):
        raise SystemExit(f"{reports}: shows {len(strange)} launches that are not in {results}: {strange[0]}")
    if claims.judged_by != state.judged_by:
        raise SystemExit(
            f"{reports}: its verdicts were judged by other rules or claims than those of the run; "
            f"check out commit {state.commit[:10]}, then `scaleproof judge` and `scaleproof report` make them again"
        )
    return manifest


def checked_manifest(reference: Path = REFERENCE) -> Manifest | None:
    """The manifest of the stored run; None for one without. SystemExit with one line where stored launches or files are
    not those of the manifest."""
    manifest, launches = read_manifest(reference), list(_launches(reference))
    if manifest is None:
        return None
    if why := mixed_codes((row["evidence"], row["code"]) for row in launches):
        raise SystemExit(f"{reference}: not one run: {why}")
    for row in launches:
        if row["machine"] != manifest.machine:
            raise SystemExit(f"{reference}: not one run: machines {manifest.machine} and {row['machine']}")
        if row["code"] != manifest.codes.get(row["evidence"]):
            raise SystemExit(
                f"{reference}: {row['suite']} has launches of code {row['code']}, {FILE} names another; "
                "`python -m tools.reference pack` stores all suites of one run"
            )
    here = digests(reference)
    if other := sorted(name for name, _ in here.items() ^ manifest.stored.items()):
        raise SystemExit(
            f"{reference}: not one run: {other[0]} is not as {FILE} has it; `python -m tools.reference pack` stores "
            "all files of one run"
        )
    return manifest


def another_run(results: Path, reference: Path = REFERENCE) -> str:
    """In one line, why a results folder is not the stored run; empty where it is. Where the stored run has no manifest,
    any single run may be shown."""
    launches, manifest = facts(results), checked_manifest(reference)
    if why := mixture(launches):
        return f"not one run: {why}"
    if manifest is None:
        return ""
    commit, ended = launches[0].commit, read_state(results).ended
    if (commit, ended) == (manifest.commit, manifest.ended):
        return ""
    other = f"commit {manifest.commit[:10]}, ended {manifest.ended}"
    return f"of commit {commit[:10]}, ended {ended}; the stored run is of {other}"


def statement(reference: Path = REFERENCE) -> str:
    """What stands above every table: which run it is, and whether the code has changed since."""
    manifest = checked_manifest(reference)
    if manifest is None:
        return f"**Not one run**: {_mixed(reference)}. The next reference run (`make reference`) replaces them all."
    made = (
        f"One run, ended {manifest.ended[:10]}: commit `{manifest.commit[:10]}`, machine `{manifest.machine}`, "
        f"{manifest.total_minutes:.0f} minutes; {_launches_text(manifest)}; code "
        + ", ".join(f"`{code}` ({evidence})" for evidence, code in manifest.codes.items())
        + "."
    )
    if manifest.moved_on:
        made += " **The code that its launches used has changed since.**"
    if manifest.judged_otherwise:
        made += " **The rules or claims that judged it have changed since.**"
    return made


def _launches_text(manifest: Manifest) -> str:
    """How many launches, and how many of them gave nothing."""
    of_status = manifest.launches
    return (
        f"{sum(of_status.values())} launches, {of_status.get('failed', 0)} failed, "
        f"{of_status.get('not_runnable', 0)} not runnable there"
    )


def statement_of_speed(bench: Mapping[str, Any], reference: Path = REFERENCE) -> str:
    """What stands above the tables of `make bench`, which is a run of its own."""
    manifest = read_manifest(reference)
    same = manifest is not None and bench["code"] in manifest.codes.values()
    version = "the code of the reference run" if same else "another version of the code than the reference run"
    machine = f"{bench['machine']['cores']} cores of an {bench['machine']['cpu']}"
    return f"`make bench` of {bench['date']} on {machine}, with {version}: `{bench['code']}`."


def minutes_table(reference: Path = REFERENCE) -> str:
    """The minutes of each step of the stored run, and the share of each suite."""
    manifest = read_manifest(reference)
    names = list(manifest.minutes) if manifest else suite_names()
    rows = ["| step | minutes | share |", "|---|---|---|"]
    for name in names:
        taken = f"{manifest.minutes[name]:.1f}" if manifest else RECORDED_LATER
        rows.append(f"| {name} | {taken} | {_share(name)} |")
    total = f"{manifest.total_minutes:.1f}" if manifest else RECORDED_LATER
    added = sum(added_min(name) for name in names)
    experiments = f", {added:g} of later experiments" if added else ""
    rows.append(f"| all | {total} | {BUDGET_MIN:g}{experiments} and those of later suites |")
    return "\n".join(rows) + "\n" + _slower(manifest)


def _slower(manifest: Manifest | None) -> str:
    """What shares become on a slower machine than the one for which they are stated; empty where it is none."""
    factor = slowness(manifest.minutes) if manifest else 1.0
    if factor == 1.0:
        return ""
    taken = f"{manifest.minutes[CALIBRATION]:.1f} minutes in place of {CALIBRATION_MIN:g}" if manifest else ""
    text = f"The machine of this run is slower: calibration took {taken}. "
    text += f"Each share is {factor:.2f} times as much there."
    return f"\n{text}\n"


class StoredSuite(NamedTuple):
    """What the stored run had of a suite."""

    minutes: float
    launches: Counter[str]  # by experiment
    not_runnable: int


def stored_suite(suite: str, reference: Path = REFERENCE) -> StoredSuite | None:
    """What the stored run had of a suite; None where it is not known. SystemExit where its launches are missing."""
    manifest = read_manifest(reference)
    if manifest is None or suite not in manifest.minutes:
        return None
    rows = _rows(reference / f"{suite}.runs.csv")
    absent = sum(row["status"] == "not_runnable" for row in rows)
    return StoredSuite(manifest.minutes[suite], Counter(row["experiment"] for row in rows), absent)


def _share(name: str) -> str:
    limit = limit_min(name)
    if limit is not None:
        return f"{limit:g}"
    added = f", and {added_min(name):g} of later experiments" if added_min(name) else ""
    return f"of {BUDGET_MIN:g}{added}" if name in TODAY or name in (CALIBRATION, PAGES) else ""


def _mixed(reference: Path) -> str:
    launches = list(_launches(reference))
    return mixed_codes((row["evidence"], row["code"]) for row in launches) or "the commit was not stored"


def _launches(reference: Path) -> Iterator[dict[str, str]]:
    """Rows of launches that were started."""
    for path in sorted(reference.glob("*.runs.csv")):
        for row in _rows(path):
            if row["launch"]:
                yield row | {"suite": path.name.partition(".")[0]}


def _rows(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        raise SystemExit(f"{path}: missing")
    with path.open(newline="") as source:
        return list(csv.DictReader(source))
