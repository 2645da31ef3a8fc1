"""Which of many launches count, and which belong together: one way for claims and for comparisons."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from scaleproof.claims.finished_launch import Launch
from scaleproof.core.campaign import Campaign
from scaleproof.core.record_schema import Record
from scaleproof.record.versions import Ran, last_version

Item = TypeVar("Item")


def of_last_version(records: Sequence[Record]) -> list[Record]:
    """Those of the version of the code and of the machine that ran last (record/versions.py)."""
    return last_version(records, _how_it_ran, lambda record: record.code.files)


def latest(records: Iterable[Record], repetition: Callable[[Record], Any]) -> list[Record]:
    """Of each repetition the launch that started last, in the order of repetitions."""
    ordered = sorted(records, key=lambda record: (record.started_at, record.launch))
    by_repetition = {repetition(record): record for record in ordered}
    return [by_repetition[key] for key in sorted(by_repetition)]


def of_different_seeds(launches: Sequence[Launch]) -> list[Launch]:
    """Merged folders may have the same campaign of a plan, whose launches have equal seeds: of such campaigns the one
    that began last. It is chosen for each repetition, since a campaign that was interrupted has several ids."""
    began: dict[Campaign, str] = {}
    for launch in launches:
        campaign, moment = launch.record.of_campaign, launch.record.started_at
        began[campaign] = min(moment, began.get(campaign, moment))
    ordered = sorted(launches, key=lambda launch: began[launch.record.of_campaign])
    last = {launch.record.plan_index: launch.record.block for launch in ordered}
    return [launch for launch in launches if launch.record.block == last[launch.record.plan_index]]


def in_blocks(first: Iterable[Item], second: Iterable[Item], block: Callable[[Item], Any]) -> list[tuple[Item, Item]]:
    """Pairs of the blocks that both sides have, in the order of blocks."""
    one, other = ({block(item): item for item in side} for side in (first, second))
    return [(one[key], other[key]) for key in sorted(one.keys() & other.keys())]


def _how_it_ran(record: Record) -> Ran:
    case, fabric = record.case_id, record.case.fabric
    return Ran(case, fabric, record.machine, record.code.used, record.status, str(record.started_at))
