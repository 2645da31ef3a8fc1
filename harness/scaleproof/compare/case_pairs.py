"""Pairs of cases of A and B that may be compared, and pairs of their launches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from scaleproof.claims.launch_choice import in_blocks
from scaleproof.compare import comparison_sentences
from scaleproof.compare.case_groups import Group, order, repetition, title
from scaleproof.compare.comparison_schema import Differing, NotPaired, UnpairedOut, UnpairedReason
from scaleproof.compare.side_selection import Side, fields, spelled
from scaleproof.core.record_schema import Record
from scaleproof.spec.evidence import STATED_WAITS

ARM = (
    "arm",
    "transport",
    "collective",
    "buffers",
    "launcher",
    "interface",
    "strategy",
    "framework",
    "strategy.bucket_mib",
    "entry",
)
"""Fields in which arms differ. Fields that change what is measured (data, network, ranks, minibatch, dtype, handicap,
...) may differ only when both sides name them."""
_FOLLOWS = {
    "arm": ARM,
    "transport": ("transport", "collective", "launcher", "arm"),
    **dict.fromkeys(STATED_WAITS, ("arm", "evidence")),
}
"""Fields that may differ together with a field that both sides name; with any other field only the arm may differ."""
_NAMES = ("suite", "experiment")
_ALWAYS = ("source",)
"""May always differ: the digest of a suite's own programs, which changes with the code; code is compared separately."""
_ABSENT = object()
SideName = Literal["A", "B"]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two groups that may be compared, and the fields in which their cases differ."""

    a: Group
    b: Group
    differs: tuple[Differing, ...]


def pair_cases(
    a: Sequence[Group], b: Sequence[Group], sides: tuple[Side, Side]
) -> tuple[list[Pair], list[UnpairedOut]]:
    """Pairs of equal cases, then of cases that differ only in fields by which the sides are defined, where there is one
    such case on each side; and the cases without a pair."""
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
    return sorted(untraced, key=lambda pair: order(pair.a)), unpaired


def _equal_cases(a: Sequence[Group], b: Sequence[Group]) -> tuple[list[Pair], list[Group], list[Group]]:
    """Pairs of equal cases, and the cases without a pair on each side."""
    others = {_identity(group): group for group in b}
    pairs = [Pair(group, others[_identity(group)], ()) for group in a if _identity(group) in others]
    return pairs, _without(a, [pair.a for pair in pairs]), _without(b, [pair.b for pair in pairs])


def _alike_but_for(allowed: frozenset[str], a: Sequence[Group], b: Sequence[Group]) -> list[Pair]:
    """Pairs that differ only in these fields, where there is one such case on each side."""
    keyed_a, keyed_b = _keyed(a, allowed), _keyed(b, allowed)
    both = [(keyed_a[key], keyed_b[key]) for key in keyed_a if key in keyed_b]
    return [
        Pair(first[0], second[0], tuple(_differing(first[0], second[0])))
        for first, second in both
        if len(first) == len(second) == 1
    ]


def _without(groups_of: Sequence[Group], removed: Sequence[Group]) -> list[Group]:
    removed_cases = {_identity(group) for group in removed}
    return [group for group in groups_of if _identity(group) not in removed_cases]


def _is_traced(pair: Pair) -> bool:
    """Whether a case of the pair is traced: recording every message takes time."""
    return pair.a.case.tracing != "none" or pair.b.case.tracing != "none"


def may_differ(a: Side, b: Side) -> tuple[frozenset[str], frozenset[str]]:
    """Fields by which the two sides are defined: those that both name, and these with the fields that follow from
    them."""
    keys = {key for key, _ in a.filters} & {key for key, _ in b.filters}
    chosen = {key for key in keys if set(a.requested(key)) != set(b.requested(key))}
    named = {*_ALWAYS, *chosen}
    follow = {also for key in chosen for also in _following(key)}
    if (a.source in ("case", "launch") and b.source in ("case", "launch")) or keys & {"case", "launch"}:
        named |= {"arm", *_NAMES}
        follow |= set(ARM)
    return frozenset(named), frozenset(named | follow)


def _following(key: str) -> tuple[str, ...]:
    """Fields that may differ together with one that both sides name."""
    if key in _NAMES:
        return _NAMES
    return _FOLLOWS.get(key, ("arm",))


def pair_launches(a: Sequence[Record], b: Sequence[Record]) -> tuple[list[tuple[Record, Record]], NotPaired | None]:
    """Pairs of launches of the same repetition and seed where both groups come from one interleaved run; else none, and
    the reason."""
    if not a or not b:
        return [], NotPaired.NO_GOOD_LAUNCH
    if {record.machine for record in a} != {record.machine for record in b}:
        return [], NotPaired.OTHER_MACHINE
    spans = sorted(
        (min(record.started_at for record in side), max(record.started_at for record in side)) for side in (a, b)
    )
    if spans[0][1] < spans[1][0]:
        return [], NotPaired.ONE_AFTER_THE_OTHER
    blocks = in_blocks(a, b, repetition)
    if not blocks and _made_once(a) and _made_once(b):  # two results folders, filled in turns
        blocks = in_blocks(a, b, lambda record: (record.plan_index, record.seed))
    return blocks, None if blocks else NotPaired.OTHER_SEEDS


def _made_once(records: Sequence[Record]) -> bool:
    """Whether no two campaigns have the same repetition, as those of merged folders may."""
    blocks = {record.block for record in records}
    return len({repetition for repetition, _ in blocks}) == len(blocks)


def _identity(group: Group) -> tuple[str, str]:
    return group.case.case_id, group.any.evidence


def _fields(group: Group) -> dict[str, str]:
    return {**fields(group.case), "evidence": group.any.evidence}


def _keyed(groups_of: Iterable[Group], allowed: frozenset[str]) -> dict[tuple[tuple[str, str], ...], list[Group]]:
    """Groups by their fields without the allowed ones."""
    keyed: dict[tuple[tuple[str, str], ...], list[Group]] = {}
    for group in groups_of:
        key = tuple((name, value) for name, value in _fields(group).items() if name not in allowed)
        keyed.setdefault(key, []).append(group)
    return keyed


def _differing(a: Group, b: Group) -> list[Differing]:
    first, second = _fields(a), _fields(b)
    names = [*first, *(name for name in second if name not in first)]
    return [
        Differing(name=name, a=_field_text(a, first, name), b=_field_text(b, second, name))
        for name in names
        if first.get(name) != second.get(name)
    ]


def _field_text(group: Group, field_texts: Mapping[str, str], name: str) -> str:
    """A field's value, also that of an option at its default; a dash where the case has no such field."""
    if name in field_texts:
        return field_texts[name]
    value = group.case.complete().get(name, _ABSENT)
    return "–" if value is _ABSENT else spelled(value)


def _unpaired(side: SideName, group: Group, others: Sequence[Group], allowed: frozenset[str]) -> UnpairedOut:
    """A case without a pair, with the fields in which it differs from the nearest case of the other side."""
    same_program = [other for other in others if other.case.program == group.case.program]
    if not same_program:
        return _unpaired_out(side, group, UnpairedReason.NO_SUCH_PROGRAM)

    differing = {_identity(other): _differing(group, other) for other in same_program}
    unequal = {
        identity: tuple(field for field in fields_of if field.name not in allowed)
        for identity, fields_of in differing.items()
    }

    def distance(other: Group) -> tuple[int, int, tuple[str, ...]]:
        return len(unequal[_identity(other)]), len(differing[_identity(other)]), order(other)

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
