"""Whether launches are one run: one commit, one machine, one digest of the code for each level of evidence. Nothing is
stored or shown as the reference run that is not."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from scaleproof.claims.judging_version import judging_version
from scaleproof.record.used_code import content_hash
from tools.reference import ROOT

FILE = "run.json"
"""Of results/reference: the manifest."""
STORED = ("*.runs.csv", "*.verdicts.csv", "records/*")
"""Of results/reference: the files of the run. `make bench` and the study of calibration are runs of their own."""


@dataclass(frozen=True, slots=True)
class Fact:
    """What a launch says of the run that it belongs to."""

    name: str
    """Suite and launch, for messages."""
    suite: str
    size: str
    evidence: str
    commit: str
    dirty: bool
    machine: str
    code: str
    files: dict[str, str] = field(default_factory=dict)


class Manifest(BaseModel):
    """One reference run."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    commit: str
    machine: str
    codes: dict[str, str] = Field(description="digest of the code that ran, by level of evidence")
    suites: tuple[str, ...]
    launches: dict[str, int] = Field(description="planned launches of the suites, by status")
    minutes: dict[str, float] = Field(description="of each step, in the order in which they ran")
    ended: str = Field(description="when the last step ended, UTC")
    files: dict[str, str] = Field(description="modules that launches used, with the start of their SHA-256")
    judged_by: dict[str, str] = Field(description="by suite: the version of the code and files that judged its claims")
    stored: dict[str, str] = Field(default_factory=dict, description="SHA-256 of each file of STORED, by path")

    @property
    def total_minutes(self) -> float:
        """Of all steps."""
        return sum(self.minutes.values())

    @property
    def moved_on(self) -> list[str]:
        """Modules that launches used and that have changed since."""
        return [name for name, content in sorted(self.files.items()) if content_hash(name) != content]

    @property
    def judged_otherwise(self) -> list[str]:
        """Suites whose rules, metrics, claims or published values have changed since."""
        suites = ROOT / "suites"
        return [name for name, version in sorted(self.judged_by.items()) if judging_version(suites / name) != version]


def facts(results: Path) -> list[Fact]:
    """Of every launch in a results folder; a folder that is no record is passed over, as everywhere."""
    found = []
    for path in sorted((results / "runs").glob("*/*/run.json")):
        try:
            found.append(_fact(json.loads(path.read_bytes())))
        except (ValueError, KeyError, TypeError):
            continue
    return found


def _fact(form: dict[str, Any]) -> Fact:
    code, case = form["code"], form["case"]
    return Fact(
        name=f"{case['suite']} {form['launch']}",
        suite=case["suite"],
        size=form["size"],
        evidence=form["evidence"],
        commit=code["commit"] or "",
        dirty=bool(code["dirty"]),
        machine=form["machine"],
        code=code["digest"],
        files=code.get("files", {}),
    )


def mixture(launches: Sequence[Fact]) -> str:
    """In one line, why these launches are no single run; empty where they are."""
    if not launches:
        return "no launches"
    for what, values in (
        ("commits", [launch.commit[:10] or "none" for launch in launches]),
        ("machines", [launch.machine for launch in launches]),
    ):
        if len(set(values)) > 1:
            return f"launches of {len(set(values))} {what}: {_counted(values)}"
    if dirty := [launch.name for launch in launches if launch.dirty or not launch.commit]:
        return f"{len(dirty)} launches ran code that no commit has, the first is {dirty[0]}"
    return mixed_codes((launch.evidence, launch.code) for launch in launches) or _changed_file(launches)


def mixed_codes(codes: Iterable[tuple[str, str]]) -> str:
    """In one line, the level of evidence that has more than one digest of the code; empty where none has."""
    by_evidence: dict[str, list[str]] = {}
    for evidence, code in codes:
        by_evidence.setdefault(evidence, []).append(code)
    for evidence, values in sorted(by_evidence.items()):
        if len(set(values)) > 1:
            return f"{evidence} launches of {len(set(values))} versions of the code: {_counted(values)}"
    return ""


def _changed_file(launches: Sequence[Fact]) -> str:
    contents: dict[str, str] = {}
    for launch in launches:
        for name, content in launch.files.items():
            if contents.setdefault(name, content) != content:
                return f"two versions of module {name}, the second in {launch.name}"
    return ""


def _counted(values: Sequence[str]) -> str:
    return ", ".join(f"{count} of {value}" for value, count in Counter(values).most_common())


def manifest_of(
    launches: Sequence[Fact],
    suites: Sequence[str],
    planning: Collection[str],
    statuses: dict[str, int],
    minutes: dict[str, float],
    ended: str,
    judged_by: dict[str, str],
) -> Manifest:
    """The manifest of one run. `planning`: the suites that plan launches; any other one is computed from what is
    published. SystemExit with one line where it is no single run, or where a suite lacks launches or verdicts."""
    if why := mixture(launches):
        raise SystemExit(f"not one run: {why}")
    if missing := sorted(set(planning) - {launch.suite for launch in launches}):
        raise SystemExit(f"not a whole run: no launch of {', '.join(missing)}")
    if missing := sorted(set(suites) - judged_by.keys()):
        raise SystemExit(f"not a whole run: no verdicts of {', '.join(missing)}")
    return Manifest(
        commit=launches[0].commit,
        machine=launches[0].machine,
        codes=dict(sorted({(fact.evidence, fact.code) for fact in launches})),
        suites=tuple(suites),
        launches=statuses,
        minutes=minutes,
        ended=ended,
        files=dict(sorted({name: content for fact in launches for name, content in fact.files.items()}.items())),
        judged_by=judged_by,
    )


def read_manifest(reference: Path) -> Manifest | None:
    """The manifest of a stored run; None for one that was stored before runs had one."""
    path = reference / FILE
    if not path.exists():
        return None
    try:
        return Manifest.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise SystemExit(f"{path}: no manifest of a reference run: {error.errors()[0]['msg']}") from None


def write_manifest(reference: Path, manifest: Manifest) -> None:
    """Beside the files of the run, with their digests."""
    whole = manifest.model_copy(update={"stored": digests(reference)})
    (reference / FILE).write_text(whole.model_dump_json(indent=1) + "\n")


def digests(reference: Path) -> dict[str, str]:
    """SHA-256 of each file of STORED, by its path."""
    paths = sorted(path for pattern in STORED for path in reference.glob(pattern))
    return {path.relative_to(reference).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}
