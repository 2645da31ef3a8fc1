"""Which launches of a plan may be compared: only those with the same code on the same machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from scaleproof.record.used_code import agree
from scaleproof.spec import registry

Item = TypeVar("Item")


class Ran(NamedTuple):
    """What a launch ran, on what, and how it ended."""

    case: str
    fabric: str
    machine: str
    code: str
    """Digest of the files that it used (Code.used)."""
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


def last_version(
    items: Sequence[Item], ran: Callable[[Item], Ran], files: Callable[[Item], Mapping[str, str]]
) -> list[Item]:
    """The items that ran the code, on the machine, of the launch that began last (of those that ended well, if any), in
    their order.

    Launches of earlier versions count
    too while every file that they used was still the same: after an edit to one strategy only its own launches run
    again. `files`: the files that a launch used (Code.files), read once for each value of Ran.code.

    The most recent machine is the one on which this code began last. Simulated and real launches are chosen
    separately, since predictions follow from other code. So are cases on a network that exists and those on nodes that
    a fabric makes: in an allocation the former run on its nodes, the latter on one machine."""
    launches = [ran(item) for item in items]
    chosen: set[int] = set()
    for predicted in (False, True):
        group = [index for index, launch in enumerate(launches) if launch.predicted is predicted]
        same_code = _same_code(group, launches, lambda index: files(items[index]))
        for existing in (False, True):
            network = [index for index in same_code if launches[index].existing_network is existing]
            if network:
                machine = _last(launches[index] for index in network).machine
                chosen |= {index for index in network if launches[index].machine == machine}
    return [items[index] for index in sorted(chosen)]


def _same_code(group: Sequence[int], launches: Sequence[Ran], files: Callable[[int], Mapping[str, str]]) -> list[int]:
    """Indices of the launches whose code is that of the launch that began last, in the files that both used."""
    versions: dict[str, list[int]] = {}
    for index in group:
        versions.setdefault(launches[index].code, []).append(index)
    if len(versions) < 2:
        return list(group)
    contents: dict[str, str] = {}
    code_of_case: dict[str, str] = {}
    chosen: list[int] = []
    for code, indices in sorted(versions.items(), key=lambda item: _recency(launches, item[1]), reverse=True):
        used = files(indices[0])
        if chosen and not agree(used, contents):
            continue
        contents |= used
        chosen += [index for index in indices if code_of_case.setdefault(launches[index].case, code) == code]
    return chosen


def _recency(launches: Sequence[Ran], indices: Sequence[int]) -> tuple[bool, str]:
    """Of a version: whether a launch of it ended well, and when its last launch began."""
    last = _last(launches[index] for index in indices)
    return last.status == "ok", last.started_at


def _last(launches: Iterable[Ran]) -> Ran:
    """The launch that began last, of those that ended well if there are any."""
    return max(launches, key=lambda launch: (launch.status == "ok", launch.started_at))
