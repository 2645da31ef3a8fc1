"""Which launches of a plan may be compared: only those with the same code on the same machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from scaleproof.spec import registry

Item = TypeVar("Item")


class Ran(NamedTuple):
    """What a launch ran on and with, and how it ended."""

    fabric: str
    machine: str
    code: str
    status: str
    started_at: str

    @property
    def predicted(self) -> bool:
        """By the simulator."""
        return registry.get("fabric", self.fabric).predicted

    @property
    def existing_network(self) -> bool:
        """On this machine or the nodes of an allocation, not on nodes that a fabric made."""
        return registry.get("fabric", self.fabric).existing_network


def last_version(items: Sequence[Item], ran: Callable[[Item], Ran]) -> list[Item]:
    """The items that ran the most recent code on the most recent machine, in their order.

    The most recent code is that of the launch that began last; the most recent machine is the one on which this code
    began last. Simulated and real launches are chosen separately, since predictions depend on other code. Launches on
    an existing network and on nodes that a fabric makes are chosen separately too: in an allocation, the former run on
    its nodes and the latter on one machine."""
    launches = [(item, ran(item)) for item in items]
    versions: set[tuple[bool, bool, str, str]] = set()
    for simulated in (False, True):
        group = [launch for _, launch in launches if launch.predicted is simulated]
        if not group:
            continue
        code = _last(group).code
        for existing in (False, True):
            same_code = [launch for launch in group if launch.code == code and launch.existing_network is existing]
            if same_code:
                versions.add((simulated, existing, _last(same_code).machine, code))
    return [
        item
        for item, launch in launches
        if (launch.predicted, launch.existing_network, launch.machine, launch.code) in versions
    ]


def _last(launches: Sequence[Ran]) -> Ran:
    """The launch that began last, among those that ended well if there are any."""
    ok = [launch for launch in launches if launch.status == "ok"]
    return max(ok or launches, key=lambda launch: launch.started_at)
