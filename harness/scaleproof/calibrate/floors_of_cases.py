"""Noise floors from repeated launches of one case, which differ in nothing but their seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from scaleproof.calibrate.measured_noise_floors import (
    LAUNCHES,
    Key,
    floor_share_of_launches,
    in_words,
    repetitions,
    values_of,
)
from scaleproof.claims.metrics import METRICS, Metric
from scaleproof.launch.nodes.allocated_nodes import AllocatedNodes
from scaleproof.launch.sequential_stopping import finished_launches
from scaleproof.record.machine import Floor
from scaleproof.record.store import Store
from scaleproof.spec.plan import PlannedLaunch


@dataclass(slots=True)
class _Launches:
    """Values of one metric in the launches of one case, and which calls of `run` made these."""

    words: str
    values: list[float] = field(default_factory=list)
    calls: set[str] = field(default_factory=set)
    code: str = ""


def floors_of_cases(
    planned: Sequence[PlannedLaunch],
    store: Store,
    allocated: AllocatedNodes | None = None,
    metrics: Mapping[str, Metric] = METRICS,
) -> tuple[list[Floor], list[str]]:
    """A floor per metric, kind of launch and message size from those of the planned launches that are finished, on this
    machine or on the nodes of `allocated`, and their ids. A case with fewer than 6 values of a metric gives none; of
    several cases of one kind the noisiest counts."""
    counts = repetitions(planned)
    floors, runs = dict[Key, Floor](), list[str]()
    for case in {launch.case.case_id: launch.case for launch in planned}.values():
        of_case: dict[Key, _Launches] = {}
        for record in finished_launches(case.case_id, counts[case.case_id], store, allocated):
            runs.append(record.launch)
            for key, value in values_of(record, store.samples(record).to_pandas(), metrics):
                launches = of_case.setdefault(key, _Launches(in_words(case)))
                launches.values.append(value)
                launches.calls.add(record.campaign_id)
                launches.code = record.code.digest
        for key, launches in of_case.items():
            floor = _floor(key, launches)
            if floor is not None and (key not in floors or floors[key].share < floor.share):
                floors[key] = floor
    return [floors[key] for key in sorted(floors, key=lambda key: key.order)], runs


def _floor(key: Key, launches: _Launches) -> Floor | None:
    values = np.array(launches.values)
    if len(values) < LAUNCHES or values.min() <= 0:
        return None
    made = f" made in {len(launches.calls)} calls" if len(launches.calls) > 1 else ""
    how = f"{len(values)} launches of one case{made}, {launches.words}; bootstrap over launches, {LAUNCHES} an arm"
    return Floor(
        metric=key.metric,
        kind=key.kind,
        nbytes=key.nbytes,
        share=floor_share_of_launches(values),
        spread=float(np.std(np.log(values), ddof=1)),
        launches_per_arm=LAUNCHES,
        comparisons=0,
        taken=how,
        code=launches.code,
    )
