"""The noise floor that a difference must exceed: from the profiles of the machines that the two sides ran on."""

from __future__ import annotations

from harness.compare.pairing import Pair
from harness.compare.selection import Side
from harness.compare.values import Key
from harness.record.machine import MachineProfile, read_profile


class Floors:
    """Profiles of both sides' results folders, read once."""

    def __init__(self, sides: tuple[Side, Side]) -> None:
        machines = {record.machine for side in sides for record in side.records}
        folders = dict.fromkeys(side.store.results for side in sides)
        self._profiles: dict[str, list[MachineProfile]] = {
            machine: [profile for folder in folders if (profile := read_profile(folder, machine)) is not None] for machine in sorted(machines)
        }

    def share(self, pair: Pair, key: Key) -> float | None:
        """The largest floor of the machines behind a pair, as a share; None when one of them has none."""
        shares = []
        for machine in {record.machine for group in (pair.a, pair.b) for record in group.launches}:
            known = [floor.share for profile in self._profiles[machine] if (floor := profile.floor(key[0], pair.a.case.program, key[1])) is not None]
            if not known:
                return None
            shares.append(max(known))
        return max(shares, default=None)
