"""What a reader must know before believing a comparison."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from scaleproof.compare import comparison_sentences
from scaleproof.compare.case_pairs import Group
from scaleproof.compare.comparison_schema import EnvironmentOut, PairOut, WarningOut
from scaleproof.compare.side_selection import Side
from scaleproof.core.record_schema import Record
from scaleproof.record import placement
from scaleproof.record.placement import listed
from scaleproof.stats.intervals import smallest_count


@dataclass(frozen=True, slots=True)
class Around:
    """Everything that a warning can come from; `used` are the launches compared on each side, `missing` the suites that
    are not here."""

    pairs: Sequence[PairOut]
    environment: Sequence[EnvironmentOut]
    used: tuple[list[Record], list[Record]]
    sides: tuple[Side, Side]
    groups: tuple[list[Group], list[Group]]
    missing: Sequence[str] = ()


def warnings(around: Around) -> list[WarningOut]:
    """In the order in which they matter."""
    found = [*_pairs(around), *_nodes(around), *_launches(around), *_environment(around), *_marks(around)]
    return [WarningOut(code=code, message=message) for code, message in found]


def _pairs(around: Around) -> Iterator[tuple[str, str]]:
    pairs = around.pairs
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
            f"no noise floor is known for {listed(unknown)}: a change of these counts as no regression{advice}",
        )
    if few := sum(min(row.n) < smallest_count() for row in rows):
        yield (
            "few_launches",
            f"{few} of {len(rows)} rows have fewer than {smallest_count()} launches a side, too few for an interval",
        )
    if differing := sorted({found.name for pair in pairs for found in pair.differs} - {"arm", "experiment", "suite"}):
        yield "configuration", f"the cases differ in {listed(differing)}"


def _nodes(around: Around) -> Iterator[tuple[str, str]]:
    """Pairs whose two cases did not have the same nodes, or had them differently far apart; each finding once."""
    records = {record.launch: record for side in around.used for record in side}
    found = Counter[tuple[placement.Code, str]]()
    for pair in around.pairs:
        sides = [
            (name, [records[run] for run in runs if run in records])
            for name, runs in (("A", pair.runs_a), ("B", pair.runs_b))
        ]
        found.update(placement.unlike(sides))
    for (code, message), count in found.items():
        of = f" ({count} of {len(around.pairs)} cases)" if len(around.pairs) > 1 else ""
        yield code, f"{message}{of}; {placement.ADVICE[code]}"


def _launches(around: Around) -> Iterator[tuple[str, str]]:
    first, second = ({record.launch for record in side} for side in around.used)
    if same := first & second:
        yield "same_launches", f"{len(same)} launches are on both sides"
    if missing := sorted({record.case.suite for side in around.used for record in side} & set(around.missing)):
        yield (
            "suite_missing",
            f"no suite {listed(missing)} is found here (--suites): metrics that it adds are not compared",
        )
    for name, side, grouped in zip("AB", around.sides, around.groups, strict=True):
        if lost := sum(record.status != "ok" for record in side.records):
            yield "failed_launches", f"{lost} of {len(side.records)} launches of {name} failed or could not run"
        if left := sum(group.left_out for group in grouped):
            yield (
                "left_out",
                f"{left} good launches of {name} are left out: run again later, or of other code or another machine "
                "than the last of their case",
            )


def _environment(around: Around) -> Iterator[tuple[str, str]]:
    for part in dict.fromkeys(found.part for found in around.environment):
        unequal = [found for found in around.environment if found.part == part and found.matters and not found.asked]
        if unequal:
            words = [f"{found.name} ({_values(found.a)} in A, {_values(found.b)} in B)" for found in unequal]
            yield f"unequal_{part}", f"{part}: {listed(words)}"
    for name, side in zip("AB", around.used, strict=True):
        if any(record.code.dirty for record in side):
            yield "local_changes", f"{name} ran code with local changes: its commit does not say what was measured"


def _marks(around: Around) -> Iterator[tuple[str, str]]:
    """Warnings that the launches themselves carry."""
    found = [
        Counter(
            warning.code
            for record in side
            for warning in {warning.code: warning for warning in record.warnings}.values()
        )
        for side in around.used
    ]
    for code in sorted(found[0].keys() | found[1].keys()):
        counts = " and ".join(
            f"{counted[code]} of {len(side)} of {name}"
            for name, counted, side in zip("AB", found, around.used, strict=True)
        )
        yield "launch_warning", f"launches that carry the warning {code!r}: {counts}"


def _values(values: Sequence[str]) -> str:
    return ", ".join(values) or "absent"
