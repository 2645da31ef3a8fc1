"""index.html: the machines, the number of claims by verdict, and every claim with its rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from scaleproof.claims.claims_file import ClaimResult
from scaleproof.core.evidence_marks import evidence_text
from scaleproof.core.record_schema import Code, Record
from scaleproof.report import tags, verdicts
from scaleproof.report.data import SuiteData
from scaleproof.report.numbers import nbytes
from scaleproof.report.pages import Fact, Pages


@dataclass(frozen=True, slots=True)
class Group:
    """Claims that are counted together and have one table."""

    id: str
    title: str
    description: str
    claims: list[ClaimResult]

    @property
    def counts(self) -> list[verdicts.Count]:
        """Number of claims by verdict."""
        return verdicts.counts(self.claims)


_GROUPS: tuple[tuple[str, str, str, Callable[[ClaimResult], bool]], ...] = (
    (
        "claims",
        "Published claims",
        "results of the papers, judged by their rule.",
        lambda claim: claim.kind == "claim" and claim.origin == "paper",
    ),
    (
        "own",
        "Claims of our own",
        "what we claim about the world, to our tolerance.",
        lambda claim: claim.kind == "claim" and claim.origin == "own",
    ),
    (
        "checks",
        "Checks",
        "identities and counters that our own code should keep; counted apart, since they say nothing about the world.",
        lambda claim: claim.kind == "check",
    ),
    (
        "consistency",
        "Consistency",
        "figures that follow from others by arithmetic; counted apart.",
        lambda claim: claim.kind == "consistency",
    ),
    ("context", "Context", "settings and descriptions; shown, never judged.", lambda claim: claim.kind == "context"),
)


def write(pages: Pages, size: str, data: list[SuiteData], calibrated: Sequence[Fact] = ()) -> Path:
    """Write index.html."""
    claims = [claim for suite in data for claim in suite.claims]
    groups = [
        Group(id, title, description, [claim for claim in claims if belongs(claim)])
        for id, title, description, belongs in _GROUPS
    ]
    launches = [{"name": suite.name, "title": suite.suite.title, "counts": suite.counts()} for suite in data]
    order = {verdict: index for index, verdict in enumerate(verdicts.ORDER)}
    values = {
        "groups": groups,
        "launches": launches,
        "order": order,
        "any_claims": bool(claims),
        "meanings": list(verdicts.MEANING.items()),
    }
    marks = {
        (claim.suite, claim.id, claim.evidence): tags.of_claim(claim, suite) for suite in data for claim in suite.claims
    }
    values["attained"] = {
        (claim.suite, claim.id, claim.evidence): suite.attained(claim) for suite in data for claim in suite.claims
    }
    values |= {
        "marks_of": {key: tags.attribute(of_claim) for key, of_claim in marks.items()},
        "axes": tags.choices(marks.values()),
    }
    return pages.write("index.html", "index.html.j2", machine=[*machine(size, data), *calibrated], **values)


def machine(size: str, data: list[SuiteData]) -> list[Fact]:
    """Facts about the origin of the numbers, for the head of the page; all machines are named."""
    records = [run.record for suite in data for run in suite.runs if run.record]
    machines = _machines(records)
    facts = [
        Fact(f"{fact} ({name})" if len(machines) > 1 else fact, " and ".join(values))
        for name, facts_of in machines.items()
        for fact, values in facts_of.items()
    ]
    if records:
        days = sorted({record.started_at[:10] for record in records})
        facts += [Fact("Code", _versions(records)), Fact("Launched", " to ".join(dict.fromkeys((days[0], days[-1]))))]
    levels = Counter(evidence_text(record.evidence, record.case.fabric, record.case.transport) for record in records)
    evidence = ", ".join(f"{level} {count}" for level, count in sorted(levels.items()))
    facts += [Fact("Size", size), Fact("Evidence", evidence or "none yet")]
    facts.append(Fact("Launches", f"{len(records)} with a record"))
    if crowded := sum(record.oversubscribed for record in records):
        facts.append(Fact("Oversubscribed", f"{crowded} launches with more ranks than cores, drawn hollow"))
    if shared := sum(record.shared_cores for record in records):
        text = f"{shared} launches whose communication threads or servers share cores with compute"
        facts.append(Fact("Shared cores", text))
    return facts


def _machines(records: Sequence[Record]) -> dict[str, dict[str, list[str]]]:
    """Facts by machine; each fact has all values from its records."""
    machines: dict[str, dict[str, list[str]]] = {}
    for name, facts in dict.fromkeys(_describe(record) for record in records):
        for fact, value in facts:
            values = machines.setdefault(name, {}).setdefault(fact, [])
            if value not in values:
                values.append(value)
    return machines


def _versions(records: Sequence[Record]) -> str:
    """One or two versions of the code; if there are more, the last one that ran and the number of the others."""
    last = {
        _version(record.code): record.started_at for record in sorted(records, key=lambda record: record.started_at)
    }
    newest = max(last, key=lambda version: last[version])
    return (
        "; ".join(sorted(last))
        if len(last) <= 2
        else f"{newest}, and {len(last) - 1} others; each launch names its own"
    )


def _version(code: Code) -> str:
    commit = f", commit {code.commit[:12]}" if code.commit else ""
    return f"{code.version}{commit}{' with local changes' if code.dirty else ''}, digest {code.digest}"


def _describe(record: Record) -> tuple[str, tuple[Fact, ...]]:
    environment = record.environment
    memory = environment.get("memory_mib")
    values = (
        ("Processor", environment.get("cpu")),
        ("Cores", environment.get("cores")),
        ("Memory", nbytes(memory * 2**20) if memory else None),
        ("Kernel", environment.get("kernel")),
        ("Python", environment.get("python")),
        ("Machine id", record.machine),
    )
    return record.machine, tuple(Fact(name, str(value)) for name, value in values if value is not None)
