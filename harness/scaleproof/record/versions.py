"""Which of many launches of the same plan stand beside each other: unequal things are never compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

SIMULATED, HOST = "simulated", "host"
Item = TypeVar("Item")


class Ran(NamedTuple):
    """What a launch ran on and with, and how it ended."""

    fabric: str
    machine: str
    code: str
    status: str
    started_at: str


def last_version(found: Sequence[Item], ran: Callable[[Item], Ran]) -> list[Item]:
    """Those with the code of the last one that finished, on the machine that had that code last; in the order given.
    Predictions follow from other code than launches. On an allocation cases of fabric `host` stand on its nodes and
    those that make their own network on one of them: two machines."""
    told = [(item, ran(item)) for item in found]
    kept: set[tuple[bool, bool, str, str]] = set()
    for simulated in (False, True):
        group = [one for _, one in told if (one.fabric == SIMULATED) is simulated]
        if not group:
            continue
        code = _last(group).code
        for on_host in (False, True):
            here = [one for one in group if one.code == code and (one.fabric == HOST) is on_host]
            if here:
                kept.add((simulated, on_host, _last(here).machine, code))
    return [item for item, one in told if (one.fabric == SIMULATED, one.fabric == HOST, one.machine, one.code) in kept]


def _last(some: Sequence[Ran]) -> Ran:
    return max([one for one in some if one.status == "ok"] or some, key=lambda one: one.started_at)
