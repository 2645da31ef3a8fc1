"""Warnings about what limits the conclusions from a comparison."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from scaleproof.compare import comparison_sentences
from scaleproof.compare.case_groups import Group
from scaleproof.compare.comparison_schema import EnvironmentOut, PairOut, WarningOut
from scaleproof.compare.side_selection import Side
from scaleproof.core.record_schema import Record
from scaleproof.record import placement
from scaleproof.record.placement import listed
from scaleproof.stats.intervals import smallest_count


@dataclass(frozen=True, slots=True)
class WarningSources:
    """Everything that a warning can come from. `used`: the launches compared on each side; `missing`: suites that are
    not installed here."""

    pairs: Sequence[PairOut]
    environment: Sequence[EnvironmentOut]
    used: tuple[list[Record], list[Record]]
    sides: tuple[Side, Side]
    groups: tuple[list[Group], list[Group]]
    missing: Sequence[str] = ()


def warnings(sources: WarningSources) -> list[WarningOut]:
    """All warnings, the most important first."""
    codes_and_messages = [
        *_pairs(sources),
        *_nodes(sources),
        *_launches(sources),
        *_environment(sources),
        *_launch_warnings(sources),
    ]
    return [WarningOut(code=code, message=message) for code, message in codes_and_messages]


def _pairs(sources: WarningSources) -> Iterator[tuple[str, str]]:
    pairs = sources.pairs
    if not pairs:
        yield "nothing_compared", "no case of A may be compared with one of B; the list of unpaired cases says why"
    if failed := [pair for pair in pairs if pair.all_failed]:
        yield "failed", f"no launch of B ended well in {len(failed)} of {len(pairs)} cases in which A has good ones"
    if [pair for pair in pairs if not pair.same_machine]:
        yield (
            "different_machines",
            "A and B ran on different machines: a difference may be the machines'; "
            "it counts only with --across-machines",
        )
    apart = [pair for pair in pairs if pair.same_machine and not pair.paired and pair.rows]
    if apart:
        reasons = sorted({pair.not_paired for pair in apart if pair.not_paired is not None})
        why = ", ".join(map(comparison_sentences.not_paired_sentence, reasons))
        yield (
            "not_interleaved",
            f"{len(apart)} of {len(pairs)} cases: launches are not compared block by block, since {why}; "
            "what drifted in between is in the difference",
        )
    rows = [row for pair in pairs for row in pair.rows]
    if unknown := sorted({row.metric for row in rows if row.floor is None and row.direction}):
        advice = "" if any(row.floor for row in rows) else f"; {comparison_sentences.advice_without_floor(unknown)}"
        yield (
            "no_noise_floor",
            f"no noise floor is known for {listed(unknown)}: a change of these is inconclusive{advice}",
        )
    if few := sum(min(row.n) < smallest_count() for row in rows):
        yield (
            "few_launches",
            f"{few} of {len(rows)} rows have fewer than {smallest_count()} launches a side, too few for an interval",
        )
    if differing := sorted({field.name for pair in pairs for field in pair.differs} - {"arm", "experiment", "suite"}):
        yield "configuration", f"the cases differ in {listed(differing)}"


def _nodes(sources: WarningSources) -> Iterator[tuple[str, str]]:
    """Pairs whose cases ran on different nodes, or on nodes at different network distances; each difference once."""
    records = {record.launch: record for side in sources.used for record in side}
    counts = Counter[tuple[placement.Code, str]]()
    for pair in sources.pairs:
        sides = [
            (name, [records[run] for run in runs if run in records])
            for name, runs in (("A", pair.runs_a), ("B", pair.runs_b))
        ]
        counts.update(placement.placement_differences(sides))
    for (code, message), count in counts.items():
        of = f" ({count} of {len(sources.pairs)} cases)" if len(sources.pairs) > 1 else ""
        yield code, f"{message}{of}; {placement.ADVICE[code]}"


def _launches(sources: WarningSources) -> Iterator[tuple[str, str]]:
    first, second = ({record.launch for record in side} for side in sources.used)
    if same := first & second:
        yield "same_launches", f"{len(same)} launches are on both sides"
    if missing := sorted({record.case.suite for side in sources.used for record in side} & set(sources.missing)):
        yield (
            "suite_missing",
            f"no suite {listed(missing)} is found here (--suites): metrics that it adds are not compared",
        )
    for name, side, grouped in zip("AB", sources.sides, sources.groups, strict=True):
        if failed := sum(record.status != "ok" for record in side.records):
            yield "failed_launches", f"{failed} of {len(side.records)} launches of {name} failed or could not run"
        if left_out := sum(group.left_out for group in grouped):
            yield (
                "left_out",
                f"{left_out} good launches of {name} are left out: run again later, or of other code or another "
                "machine than the last of their case",
            )


def _environment(sources: WarningSources) -> Iterator[tuple[str, str]]:
    unexpected = [fact for fact in sources.environment if fact.matters and not fact.asked]
    for part in dict.fromkeys(fact.part for fact in unexpected):
        facts = [
            f"{fact.name} ({_values(fact.a)} in A, {_values(fact.b)} in B)" for fact in unexpected if fact.part == part
        ]
        yield f"unequal_{part}", f"{part}: {listed(facts)}"
    for name, side in zip("AB", sources.used, strict=True):
        if any(record.code.dirty for record in side):
            yield "local_changes", f"{name} ran code with local changes: its commit does not say what was measured"


def _launch_warnings(sources: WarningSources) -> Iterator[tuple[str, str]]:
    """The warnings of the launches themselves, counted."""
    counts = [
        Counter(code for record in side for code in dict.fromkeys(warning.code for warning in record.warnings))
        for side in sources.used
    ]
    for code in sorted(counts[0].keys() | counts[1].keys()):
        of_sides = " and ".join(
            f"{of_side[code]} of {len(side)} of {name}"
            for name, of_side, side in zip("AB", counts, sources.used, strict=True)
        )
        yield "launch_warning", f"launches that carry the warning {code!r}: {of_sides}"


def _values(values: Sequence[str]) -> str:
    return ", ".join(values) or "absent"
