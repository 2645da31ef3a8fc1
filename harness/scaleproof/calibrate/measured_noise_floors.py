"""Noise floors from launches of identical arms, one per kind of launch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import ndtri, stdtrit

from scaleproof.claims.metrics import METRICS, Metric
from scaleproof.claims.metrics_sizes import PER_SIZE
from scaleproof.core.record_schema import Record
from scaleproof.launch.nodes.allocated_nodes import AllocatedNodes
from scaleproof.launch.sequential_stopping import finished_launches
from scaleproof.record.digest import code_digest
from scaleproof.record.machine import Floor
from scaleproof.record.store import Store
from scaleproof.spec.case import AnyCase
from scaleproof.spec.launch_kind import LaunchKind
from scaleproof.spec.plan import PlannedLaunch

CONFIDENCE = 0.95
LAUNCHES = 6
"""Launches per arm of the comparisons that a floor is for: the smallest number that gives an interval."""
RESAMPLES = 10_000
SEED = 20_160_222
ARMS = ("a", "b")
FLOORS = "floors_"
"""Start of the experiments of a suite's case as twins. They keep its arm, which a suite's own program may read."""


@dataclass(frozen=True, slots=True)
class Key:
    """What a floor belongs to."""

    kind: LaunchKind
    metric: str
    nbytes: int | None

    @property
    def order(self) -> tuple[str, str, int]:
        """For sorting."""
        return str(self.kind), self.metric, self.nbytes or 0


Paired = dict[str, dict[int, float]]
"""Value by arm and block."""


def noise_floors(
    planned: Sequence[PlannedLaunch],
    store: Store,
    allocated: AllocatedNodes | None = None,
    metrics: Mapping[str, Metric] = METRICS,
) -> tuple[list[Floor], list[str]]:
    """A floor per metric, kind of launch and message size of this machine, or of the nodes of `allocated`, and the
    launches behind them. Of several cases of one kind the noisiest counts."""
    by_key: dict[Key, dict[str, Paired]] = {}
    words: dict[str, str] = {}
    runs: list[str] = []
    calls: dict[int, set[str]] = {}
    counts = repetitions(planned)
    for case in {launch.case.case_id: launch.case for launch in planned}.values():
        alike = case.changed({"experiment": FLOORS, "arm": FLOORS}).case_id
        words[alike] = in_words(case)
        for record in finished_launches(case.case_id, counts[case.case_id], store, allocated):
            runs.append(record.launch)
            calls.setdefault(record.plan_index, set()).add(record.campaign_id)
            for key, value in values_of(record, store.samples(record).to_pandas(), metrics):
                arms = by_key.setdefault(key, {}).setdefault(alike, {arm: {} for arm in ARMS})
                arms[_twin(case)][record.plan_index] = value
    floors = []
    for key in sorted(by_key, key=lambda key: key.order):
        of_cases = [
            floor
            for alike, values in by_key[key].items()
            if (floor := _floor(key, words[alike], values, calls)) is not None
        ]
        if of_cases:
            floors.append(max(of_cases, key=lambda floor: floor.share))
    return floors, runs


def repetitions(planned: Sequence[PlannedLaunch]) -> dict[str, int]:
    """How many repetitions of each case there are up to the last of these."""
    counts: dict[str, int] = {}
    for launch in planned:
        counts[launch.case.case_id] = max(counts.get(launch.case.case_id, 0), launch.plan_index + 1)
    return counts


def _twin(case: AnyCase) -> str:
    """Which of two identical arms the case is."""
    return case.experiment.removeprefix(FLOORS) if case.experiment.startswith(FLOORS) else case.arm


def in_words(case: AnyCase) -> str:
    """What was measured, in words: of a training its network too."""
    parts = (case.value("workload"), case.value("entry"), f"over {case.transport}" if case.transport else "alone")
    return " ".join(str(part) for part in parts if part)


def values_of(
    record: Record, samples: pd.DataFrame, metrics: Mapping[str, Metric] = METRICS
) -> Iterator[tuple[Key, float]]:
    """The values of a launch for every metric of single launches that comes from clocks."""
    kind = record.kind
    if kind is None:
        return
    for name, metric in metrics.items():
        if not metric.timing or name in _of_other_programs(record.case.program):
            continue
        if metric.launch is not None and (value := metric.launch(record, samples)) is not None:
            yield Key(kind, name, None), value
        for nbytes, of_size in metric.by_size(record, samples).items():
            if of_size is not None and np.isfinite(of_size):
                yield Key(kind, name, nbytes), of_size


def _of_other_programs(program: str) -> set[str]:
    """Metrics per message size that belong to another program: `algbw` of a transfer is its `transfer_bandwidth`."""
    return {name for names in PER_SIZE.values() for name in names} - PER_SIZE.get(program, {}).keys()


def floor_share(first: np.ndarray, second: np.ndarray, launches: int = LAUNCHES) -> float:
    """The largest share by which medians of identical arms differ in 95 % of comparisons with so many launches per arm.
    Element k of both ran in one block.

    A bootstrap over blocks: blocks are drawn with replacement and the two launches of each swapped at random, as both
    arms are the same. Few blocks say little about other launches, so the quantile is widened as Student's t widens that
    of normal noise. ValueError with fewer blocks than launches, or a value that is 0 or below."""
    values = np.stack([first, second])
    count = _checked(values, launches, "blocks")
    generator = np.random.default_rng(SEED)
    blocks = generator.integers(count, size=(RESAMPLES, launches))
    swapped = generator.integers(2, size=blocks.shape)
    above, below = (np.median(values[side, blocks], axis=1) for side in (swapped, 1 - swapped))
    quantile = np.quantile(np.abs(np.log(above / below)), CONFIDENCE)
    return float(np.expm1(quantile * _widening(count)))


def floor_share_of_launches(values: np.ndarray, launches: int = LAUNCHES) -> float:
    """The same from launches of one case, without pairs: what their seeds change and the machine's drift are part of
    it, so that it is rather too large.

    A bootstrap over launches, of which both arms are drawn with replacement. Residuals of n launches spread by
    sqrt((n - 1) / n) less than launches, which is made up for. ValueError as in `floor_share`."""
    count = _checked(values, launches, "launches")
    residuals = (np.log(values) - np.log(values).mean()) * np.sqrt(count / (count - 1))
    drawn = np.random.default_rng(SEED).integers(count, size=(2, RESAMPLES, launches))
    first, second = np.median(residuals[drawn], axis=2)
    return float(np.expm1(np.quantile(np.abs(first - second), CONFIDENCE) * _widening(count)))


def _checked(values: np.ndarray, launches: int, what: str) -> int:
    """How many blocks or launches there are."""
    count = values.shape[-1]
    if count < launches:
        raise ValueError(f"{count} {what} are fewer than the {launches} launches of a comparison")
    if not (values > 0).all():
        raise ValueError("values of 0 or below have no ratio")
    return int(count)


def _widening(blocks: int) -> float:
    """Student's quantile over the normal one: 1.31 for 6 blocks, 1.04 for 30."""
    both_sides = (1 + CONFIDENCE) / 2
    return float(stdtrit(blocks - 1, both_sides) / ndtri(both_sides))


def spread(first: np.ndarray, second: np.ndarray) -> float:
    """Standard deviation of the logarithm of one launch's value, within blocks: without the machine's drift."""
    return float(np.std(np.log(first / second), ddof=1) / np.sqrt(2))


def _floor(
    key: Key, measured: str, values: Mapping[str, Mapping[int, float]], calls: Mapping[int, set[str]] | None = None
) -> Floor | None:
    """None where too few blocks gave a value. `calls`: the calls that made each block."""
    first, second = (values[arm] for arm in ARMS)
    blocks = sorted(first.keys() & second.keys())
    ours, theirs = (np.array([side[block] for block in blocks]) for side in (first, second))
    if len(blocks) < LAUNCHES or min(ours.min(), theirs.min()) <= 0:
        return None
    count = len(set[str]().union(*((calls or {}).get(block, set()) for block in blocks)))
    made = f" made in {count} calls" if count > 1 else ""
    how = (
        f"{len(blocks)} blocks of two identical launches{made}, {measured}; bootstrap over blocks, "
        f"{LAUNCHES} launches an arm"
    )
    return Floor(
        metric=key.metric,
        kind=key.kind,
        nbytes=key.nbytes,
        share=floor_share(ours, theirs),
        spread=spread(ours, theirs),
        launches_per_arm=LAUNCHES,
        comparisons=len(blocks) // LAUNCHES,
        taken=how,
        code=code_digest(),
    )
