"""Which code and which machines the launches of the pages ran on, what judged their claims, and whether any of it has
changed since."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from scaleproof.claims.judging_version import judging_version
from scaleproof.core.record_schema import Record
from scaleproof.record.used_code import is_current
from scaleproof.report.data import SuiteData
from scaleproof.report.pages import Fact


def code_shown(data: Sequence[SuiteData]) -> list[Fact]:
    """Lines for the head of the index; none without launches."""
    records = [record for suite in data for run in suite.runs if (record := run.record) is not None]
    if not records:
        return []
    return [Fact("Origin", _origin(records)), Fact("Code today", _code(records)), Fact("Judged", _judged(data))]


def _origin(records: Sequence[Record]) -> str:
    """Commits and machines; several are a mixture, which a reader must know of."""
    commits = sorted({(record.code.commit or "none")[:10] for record in records})
    machines = sorted({record.machine for record in records})
    dirty = sum(bool(record.code.dirty) for record in records)
    text = f"{len(records)} launches of {_named('commit', commits)} on {_named('machine', machines)}"
    return text + (f", {dirty} of them with changes that no commit has" if dirty else "")


def _named(kind: str, values: Sequence[str]) -> str:
    return f"{kind} {values[0]}" if len(values) == 1 else f"{len(values)} {kind}s ({', '.join(values)})"


def _code(records: Sequence[Record]) -> str:
    versions: dict[str, set[str]] = {}
    current: dict[tuple[str, str], bool] = {}
    changed = 0
    for record in records:
        versions.setdefault(record.evidence, set()).add(record.code.digest)
        key = record.code.used, record.case.fabric
        if key not in current:
            current[key] = is_current(record.code, record.case.fabric)
        changed += not current[key]
    mixed = [
        f"{len(digests)} versions behind {evidence} launches"
        for evidence, digests in sorted(versions.items())
        if len(digests) > 1
    ]
    since = f"changed since {changed} of the launches" if changed else "unchanged since the launches"
    return "; ".join([*mixed, since])


def _judged(data: Iterable[SuiteData]) -> str:
    """Whether rules, metrics, claims and published values are those that the verdicts come from."""
    other = [suite.name for suite in data if suite.claims and suite.judged_by != judging_version(suite.suite.folder)]
    if not other:
        return "by the rules and claims as they are now"
    return f"{', '.join(other)} by an earlier or unknown version of rules or claims; `scaleproof judge` judges again"
