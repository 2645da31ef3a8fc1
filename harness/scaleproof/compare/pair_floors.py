"""What the profiles of the machines of both sides say: the noise floor that a difference must exceed, and what a rate
can reach."""

from __future__ import annotations

from scaleproof.calibrate.attainable import Attained, attainable
from scaleproof.claims.metrics import METRICS, Metric
from scaleproof.compare.case_pairs import Pair
from scaleproof.compare.side_selection import Side
from scaleproof.core.record_schema import Record
from scaleproof.record.machine import MachineProfile, read_profile
from scaleproof.spec.launch_kind import LaunchKind

SEEDED = ("final_loss", "test_accuracy")
"""Metrics that do not depend on the machine's noise: they vary with the seed, and only the test over launches
decides."""


class Floors:
    """Profiles of both sides' results folders, read once."""

    def __init__(self, sides: tuple[Side, Side]) -> None:
        machines = {record.machine for side in sides for record in side.records}
        folders = dict.fromkeys(side.store.results for side in sides)
        self._profiles: dict[str, list[MachineProfile]] = {
            machine: [profile for folder in folders if (profile := read_profile(folder, machine)) is not None]
            for machine in sorted(machines)
        }

    def share(self, pair: Pair, metric: Metric, nbytes: int | None, launches: int) -> float | None:
        """The largest floor of the machines and kinds of launches of a pair, as a share, for so many launches a side; 0
        for metrics without a machine's noise, None when one of them has no floor."""
        if metric.name in SEEDED or (metric.name not in METRICS and not metric.timing):
            return 0.0
        shares = [
            self._share(machine, metric.name, kind, nbytes, launches)
            for machine in sorted(pair.a.machines | pair.b.machines)
            for kind in sorted(pair.a.kinds | pair.b.kinds, key=str)
        ]
        known = [share for share in shares if share is not None]
        return max(known, default=None) if len(known) == len(shares) else None

    def attained(self, record: Record, metric: Metric, value: float, nbytes: int | None) -> Attained | None:
        """A rate of a launch beside what its machine can do; None for what is no rate."""
        profile = next(iter(self._profiles[record.machine]), None)
        return attainable(record, metric, value, profile, nbytes)

    def _share(self, machine: str, metric: str, kind: LaunchKind, nbytes: int | None, launches: int) -> float | None:
        """The largest floor of a kind of launches in the profiles of a machine; None where none has it."""
        floors = [profile.floor(metric, kind, nbytes) for profile in self._profiles[machine]]
        return max((floor.of(launches) for floor in floors if floor is not None), default=None)
