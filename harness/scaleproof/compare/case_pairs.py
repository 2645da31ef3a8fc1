"""Which case of A may stand beside which case of B, and which launches of the two belong together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from scaleproof.claims.launch_choice import in_blocks, latest, of_last_version
from scaleproof.compare import comparison_sentences
from scaleproof.compare.comparison_schema import Differing, NotPaired, UnpairedOut, UnpairedReason
from scaleproof.compare.side_selection import Side, fields, spelled
from scaleproof.core.record_schema import Record
from scaleproof.spec.case import NATIVE, AnyCase

ARM = (
    "arm",
    "transport",
    "collective",
    "launcher",
    "interface",
    "strategy",
    "framework",
    "strategy.bucket_mib",
    "entry",
)
"""Fields that arms are there to vary. What measures something else (data, network, ranks, minibatch, dtype, handicap,
...) may differ only when named."""
_FOLLOWS = {"arm": ARM, "transport": ("transport", "collective", "launcher", "arm")}
"""What may differ with a field that both sides name; of other fields their label, the arm."""
_NAMES = ("suite", "experiment")
_ALWAYS = ("source",)
"""Digest of a suite's own programs: it changes with the code, which is compared apart."""
_ABSENT = object()
SideName = Literal["A", "B"]


@dataclass(frozen=True, slots=True)
class Group:
    """The launches of one case on one side: those to compare, those that failed or could not run here, and how many
    good ones are left out."""

    case: AnyCase
    launches: tuple[Record, ...]
    failed: tuple[Record, ...]
    left_out: int

    @property
    def any(self) -> Record:
        """One of its records."""
        return (*self.launches, *self.failed)[0]

    @property
    def machines(self) -> set[str]:
        """Where its good launches ran, or the failed ones when there are no good ones."""
        return {record.machine for record in self.launches or self.failed}


@dataclass(frozen=True, slots=True)
class Pair:
    """Two groups that may be compared, and the fields in which their cases differ."""

    a: Group
    b: Group
    differs: tuple[Differing, ...]


def groups(records: Sequence[Record]) -> list[Group]:
    """By case and evidence. Of several machines or versions of the code a case's last one counts, and of a repetition
    its last launch, as in claims."""
    by_case: dict[tuple[str, str], list[Record]] = {}
    for record in records:  # the case's own id: a record of older code may lack fields that now have defaults
        by_case.setdefault((record.case.case_id, record.evidence), []).append(record)
    return sorted((_group(found) for found in by_case.values()), key=_order)


def pair_cases(
    a: Sequence[Group], b: Sequence[Group], sides: tuple[Side, Side]
) -> tuple[list[Pair], list[UnpairedOut]]:
    """Equal cases first; then those that differ only in fields by which the sides are defined, where there is one on
    each side."""
    pairs, left_a, left_b = _equal_cases(a, b)
    stages = may_differ(*sides)
    for allowed in stages:
        more = _alike_but_for(allowed, left_a, left_b)
        pairs += more
        left_a = _without(left_a, [pair.a for pair in more])
        left_b = _without(left_b, [pair.b for pair in more])
    untraced = [pair for pair in pairs if not _is_traced(pair)]
    unpaired = [_unpaired("A", group, b, stages[-1]) for group in left_a]
    unpaired += [_unpaired("B", group, a, stages[-1]) for group in left_b]
    for pair in filter(_is_traced, pairs):
        unpaired.append(_unpaired_out("A", pair.a, UnpairedReason.TRACED))
        unpaired.append(_unpaired_out("B", pair.b, UnpairedReason.TRACED))
    return sorted(untraced, key=lambda pair: _order(pair.a)), unpaired


def _equal_cases(a: Sequence[Group], b: Sequence[Group]) -> tuple[list[Pair], list[Group], list[Group]]:
    """Pairs of equal cases, and what is left on each side."""
    others = {_identity(group): group for group in b}
    pairs = [Pair(group, others[_identity(group)], ()) for group in a if _identity(group) in others]
    return pairs, _without(a, [pair.a for pair in pairs]), _without(b, [pair.b for pair in pairs])


def _alike_but_for(allowed: frozenset[str], a: Sequence[Group], b: Sequence[Group]) -> list[Pair]:
    """Pairs that differ in these fields alone, where there is one case on each side."""
    keyed_a, keyed_b = _keyed(a, allowed), _keyed(b, allowed)
    both = [(keyed_a[key], keyed_b[key]) for key in keyed_a if key in keyed_b]
    return [
        Pair(first[0], second[0], tuple(_differing(first[0], second[0])))
        for first, second in both
        if len(first) == len(second) == 1
    ]


def _without(groups_of: Sequence[Group], removed: Sequence[Group]) -> list[Group]:
    gone = {_identity(group) for group in removed}
    return [group for group in groups_of if _identity(group) not in gone]


def _is_traced(pair: Pair) -> bool:
    """Whether a side is: recording every message takes time of its own."""
    return pair.a.case.tracing != "none" or pair.b.case.tracing != "none"


def may_differ(a: Side, b: Side) -> tuple[frozenset[str], frozenset[str]]:
    """Fields by which the two sides are defined: first those that are named, then also those that follow from them."""
    keys = {key for key, _ in a.filters} & {key for key, _ in b.filters}
    chosen = {key for key in keys if set(a.wanted(key)) != set(b.wanted(key))}
    named = {*_ALWAYS, *chosen}
    follow = {also for key in chosen for also in _following(key)}
    if (a.source in ("case", "launch") and b.source in ("case", "launch")) or keys & {"case", "launch"}:
        named |= {"arm", *_NAMES}
        follow |= set(ARM)
    return frozenset(named), frozenset(named | follow)


def _following(key: str) -> tuple[str, ...]:
    """Fields that may differ with one that both sides name."""
    if key in _NAMES:
        return _NAMES
    return _FOLLOWS.get(key, ("arm",))


def pair_launches(a: Sequence[Record], b: Sequence[Record]) -> tuple[list[tuple[Record, Record]], NotPaired | None]:
    """Launches of the same repetition and seed when both groups come from one interleaved run; else none, and why."""
    if not a or not b:
        return [], NotPaired.NO_GOOD_LAUNCH
    if {record.machine for record in a} != {record.machine for record in b}:
        return [], NotPaired.OTHER_MACHINE
    spans = sorted(
        (min(record.started_at for record in side), max(record.started_at for record in side)) for side in (a, b)
    )
    if spans[0][1] < spans[1][0]:
        return [], NotPaired.ONE_AFTER_THE_OTHER
    blocks = in_blocks(a, b, _repetition)
    return blocks, None if blocks else NotPaired.OTHER_SEEDS


def title(case: AnyCase, other: AnyCase | None = None) -> str:
    """A case in a few words, or two that are compared: `x against y` where they differ."""
    first, second = _words(case), _words(other or case)
    words = [
        one if one == two else f"{one or 'none'} against {two or 'none'}"
        for one, two in zip(first, second, strict=True)
    ]
    return f"{words[0]}: " + ", ".join(filter(None, words[1:]))


def _words(case: AnyCase) -> list[str]:
    what = getattr(case, "operation", None) or case.value("workload") or getattr(case, "entry", None)
    carried = (
        f"{case.transport}" + (f" {case.collective}" if case.collective != NATIVE else "")
        if case.transport
        else "no transport"
    )
    data = f"{kind} data" if (kind := case.value("workload.data")) else ""
    ranks = f"{case.ranks} rank{'s' if case.ranks != 1 else ''}"
    return [
        f"{case.suite} {case.experiment}",
        case.arm,
        " ".join(filter(None, (case.program, what))),
        data,
        carried,
        ranks,
    ]


def _group(records: Sequence[Record]) -> Group:
    ordered = sorted(records, key=lambda record: (record.started_at, record.launch))
    finished = [record for record in ordered if record.status == "ok"]
    failed = tuple(record for record in ordered if record.status != "ok")
    if not finished:
        return Group(failed[-1].case, (), failed, 0)
    kept = tuple(latest(of_last_version(finished), _repetition))
    return Group(kept[0].case, kept, failed, len(finished) - len(kept))


def _repetition(record: Record) -> tuple[int, int]:
    return record.plan_index, record.seed


def _order(group: Group) -> tuple[str, ...]:
    case = group.case
    return (
        case.suite,
        case.experiment,
        case.program,
        str(case.value("workload", "")),
        f"{case.ranks:06}",
        case.arm,
        case.case_id,
        group.any.evidence,
    )


def _identity(group: Group) -> tuple[str, str]:
    return group.case.case_id, group.any.evidence


def _fields(group: Group) -> dict[str, str]:
    return {**fields(group.case), "evidence": group.any.evidence}


def _keyed(found: Iterable[Group], allowed: frozenset[str]) -> dict[tuple[tuple[str, str], ...], list[Group]]:
    keyed: dict[tuple[tuple[str, str], ...], list[Group]] = {}
    for group in found:
        keyed.setdefault(
            tuple((name, value) for name, value in _fields(group).items() if name not in allowed), []
        ).append(group)
    return keyed


def _differing(one: Group, other: Group) -> list[Differing]:
    first, second = _fields(one), _fields(other)
    names = [*first, *(name for name in second if name not in first)]
    return [
        Differing(name=name, a=_shown(one, first, name), b=_shown(other, second, name))
        for name in names
        if first.get(name) != second.get(name)
    ]


def _shown(group: Group, known: Mapping[str, str], name: str) -> str:
    """A field's value, also that of an option at its default; a dash where the case has no such thing."""
    if name in known:
        return known[name]
    value = group.case.complete().get(name, _ABSENT)
    return "–" if value is _ABSENT else spelled(value)


def _unpaired(side: SideName, group: Group, others: Sequence[Group], allowed: frozenset[str]) -> UnpairedOut:
    """Says what stands between a case and the nearest one of the other side."""
    same_program = [other for other in others if other.case.program == group.case.program]
    if not same_program:
        return _unpaired_out(side, group, UnpairedReason.NO_SUCH_PROGRAM)

    differing = {_identity(other): _differing(group, other) for other in same_program}
    unequal = {
        identity: tuple(field for field in fields_of if field.name not in allowed)
        for identity, fields_of in differing.items()
    }

    def distance(other: Group) -> tuple[int, int, tuple[str, ...]]:
        return len(unequal[_identity(other)]), len(differing[_identity(other)]), _order(other)

    nearest = min(same_program, key=distance)
    apart = unequal[_identity(nearest)]
    reason = UnpairedReason.DIFFERS if apart else UnpairedReason.SEVERAL_FIT
    return _unpaired_out(side, group, reason, nearest.any.case_id, apart)


def _unpaired_out(
    side: SideName,
    group: Group,
    reason: UnpairedReason,
    nearest: str | None = None,
    unequal: tuple[Differing, ...] = (),
) -> UnpairedOut:
    sentence = comparison_sentences.unpaired_sentence(
        reason,
        "B" if side == "A" else "A",
        program=group.case.program,
        arm=group.case.arm,
        nearest=nearest or "",
        unequal=unequal,
    )
    return UnpairedOut(
        side=side,
        case=group.any.case_id,
        title=title(group.case),
        why=reason,
        nearest=nearest,
        unequal=unequal,
        reason=sentence,
    )
