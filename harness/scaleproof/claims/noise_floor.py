"""What limits a comparison on the machine of the records: its noise floor, and launches with more threads than
cores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from scaleproof.claims.claim_form import Rule
from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.launch_pool import Pool
from scaleproof.claims.metrics import METRICS, Metric
from scaleproof.claims.notes import Note, NoteCode, SideName, note
from scaleproof.core.record_schema import Evidence, Record
from scaleproof.record.machine import Floor, MachineProfile, read_profile
from scaleproof.spec.launch_kind import LaunchKind
from scaleproof.stats.never import is_never
from scaleproof.stats.summary import outliers


def base_metric(metric: Metric) -> Metric:
    """The metric of single launches that a ratio is made of; the metric itself where it is no ratio."""
    return METRICS[metric.ratio_of] if metric.ratio_of else metric


def floor_metrics(metric: Metric) -> tuple[str, ...]:
    """Names of the metrics of single launches whose noise floor counts, the first that a program has."""
    return metric.noise_of or (base_metric(metric).name,)


def machine_floor(profile: MachineProfile | None, metric: Metric, kind: LaunchKind, nbytes: int | None) -> Floor | None:
    """The floor of a metric for one kind of launch; None where the machine has none."""
    if profile is None:
        return None
    floors = (profile.floor(name, kind, nbytes) for name in floor_metrics(metric))
    return next((floor for floor in floors if floor is not None), None)


@dataclass(frozen=True, slots=True)
class KnownFloor:
    """The noise floor of a claim: the largest of those of its launches' kinds, as a share. `share` is None where one of
    these kinds has none, which `missing` names; both are empty where no noise of a machine matters. `single`: the same
    for comparisons of one launch with one other; None: as large as `share`. `stale`: kinds whose floor was measured
    with other code than the launches."""

    share: float | None = None
    single: float | None = None
    missing: tuple[LaunchKind, ...] = ()
    stale: tuple[LaunchKind, ...] = ()

    @property
    def of_one_launch(self) -> float | None:
        """The floor of comparisons of one launch with one other."""
        return self.share if self.single is None else self.single

    def used_for(self, metric: Metric, rule: Rule | None) -> KnownFloor:
        """The floor that a claim with this metric and rule is judged with, as `share`."""
        return replace(self, share=self.of_one_launch) if compares_single_launches(metric, rule) else self

    @property
    def unknown(self) -> bool:
        """Whether the machine's noise matters and is not known."""
        return bool(self.missing)


def compares_single_launches(metric: Metric, rule: Rule | None) -> bool:
    """Whether differences between single launches count, not those between medians of arms: in a metric of blocks or of
    pairs, and by a rule that every launch must keep (of `apart` every case, which has a median)."""
    every_launch = rule is not None and rule.name == "equal_to_tolerance" and metric.apart is None
    return every_launch or metric.block is not None or metric.pair is not None


def floor_of(
    results: Path, metric: Metric, pool: Pool, sides: Sequence[tuple[Mapping[str, Any], Evidence]], nbytes: int | None
) -> KnownFloor:
    """The noise floor for the launches of these selections that have a core for every thread, and for their number: of
    the case that has fewest. None for a metric that is no timing, or for launches that are simulated: a prediction has
    no noise of a machine.

    SpecError: the profile cannot be read.
    """
    return floor_by(_profile(results, pool), metric, pool, sides, nbytes)


def floor_by(
    profile: MachineProfile | None,
    metric: Metric,
    pool: Pool,
    sides: Sequence[tuple[Mapping[str, Any], Evidence]],
    nbytes: int | None,
) -> KnownFloor:
    """The same with a given profile."""
    if not metric.timing:
        return KnownFloor()
    codes: dict[LaunchKind, set[str]] = {}
    counts: Counter[tuple[int, str]] = Counter()
    for number, side in enumerate(sides):
        for record in (launch.record for launch in pool.launches(*side)):
            if fits(record) and record.kind is not None:
                codes.setdefault(record.kind, set()).add(record.code.digest)
                counts[number, record.case_id] += 1
    floors = {kind: machine_floor(profile, metric, kind, nbytes) for kind in codes}
    known = {kind: floor for kind, floor in floors.items() if floor is not None}
    missing = _in_order(floors.keys() - known.keys())
    stale = _in_order(kind for kind, floor in known.items() if floor.code and floor.code not in codes[kind])
    if missing or not floors:
        return KnownFloor(missing=missing, stale=stale)
    launches = min(counts.values())
    share = max(floor.of(launches) for floor in known.values())
    return KnownFloor(share, max(floor.of_one_launch for floor in known.values()), stale=stale)


def not_covered(results: Path, metric: Metric, pool: Pool, floors: Sequence[KnownFloor]) -> list[Note]:
    """A note for a timing without a floor: the machine was never calibrated, or not for these kinds of launches."""
    missing = [kind for floor in floors for kind in floor.missing]
    if not missing or pool.machine is None:
        return []
    if _profile(results, pool) is None:
        return [note(NoteCode.NO_PROFILE)]
    return [_about_kinds(NoteCode.NO_FLOOR, metric, pool, missing)]


def of_other_code(metric: Metric, pool: Pool, floors: Sequence[KnownFloor]) -> list[Note]:
    """A note on floors that were measured with other code than the launches: a floor has a digest of all code. Launches
    of a case that are judged together used the same files, so one with the floor's digest is enough."""
    stale = [kind for floor in floors for kind in floor.stale]
    return [_about_kinds(NoteCode.FLOOR_OF_OTHER_CODE, metric, pool, stale)] if stale else []


def _about_kinds(code: NoteCode, metric: Metric, pool: Pool, kinds: Sequence[LaunchKind]) -> Note:
    named = [str(kind) for kind in _in_order(kinds)]
    return note(code, metric=floor_metrics(metric)[0], kinds=named, suite=pool.suite, size=pool.size)


def _in_order(kinds: Iterable[LaunchKind]) -> tuple[LaunchKind, ...]:
    return tuple(sorted(set(kinds), key=str))


def _profile(results: Path, pool: Pool) -> MachineProfile | None:
    return None if pool.machine is None else read_profile(results, pool.machine)


def fits(record: Record) -> bool:
    """Whether the launch had a core for every thread."""
    return not record.oversubscribed


def crowd(records: Sequence[Record]) -> list[tuple[int, int, int | str]]:
    """Ranks, threads per rank and cores of these oversubscribed launches; cores are `fewer` where the record does not
    say how many there were."""
    kinds = {
        (record.case.ranks, record.case.threads_per_rank, record.environment.get("cores", "fewer"))
        for record in records
    }
    return sorted(kinds, key=str)


def outside_fences(side: SideName, values: Sequence[tuple[Launch, float]]) -> list[Note]:
    """A note on values outside Tukey's fences; they are not removed. Launches without a number have their own note."""
    values = [(launch, value) for launch, value in values if not is_never(value)]
    beyond = outliers([value for _, value in values])
    if not beyond.count:
        return []
    outside = {values[position][0].record.launch: values[position][1] for position in beyond.positions}
    return [note(NoteCode.OUTLIERS, side=side, launches=len(values), outside=outside)]
