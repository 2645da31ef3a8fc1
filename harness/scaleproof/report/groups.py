"""Groups of launches that share a panel or a series, and the titles of panels and series."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np

from scaleproof.report.data import Run
from scaleproof.spec import registry
from scaleproof.spec.case import TrainCase
from scaleproof.spec.plugins import WorkloadPlugin
from scaleproof.stats.intervals import median_interval
from scaleproof.workloads.case_network import work_factor


class PanelKey(NamedTuple):
    """Launches with the same key share a panel."""

    experiment: str
    network: str


Groups = dict[PanelKey, list[Run]]
Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Summary:
    """Median over launches, its interval (None below 6 launches) with the coverage attained, and how many launches."""

    median: float
    low: float | None
    high: float | None
    coverage: float | None
    n: int


def summary(values: Iterable[float]) -> Summary:
    """The summary of at least one value, one per launch."""
    numbers = list(values)
    interval = median_interval(numbers)
    low, high = (interval.low, interval.high) if interval else (None, None)
    return Summary(float(np.median(numbers)), low, high, interval.coverage if interval else None, len(numbers))


def grouped(runs: Iterable[Run], key: Callable[[Run], Key]) -> dict[Key, list[Run]]:
    """Runs by key, in the order of the keys' first appearance."""
    groups: dict[Key, list[Run]] = defaultdict(list)
    for run in runs:
        groups[key(run)].append(run)
    return dict(groups)


def training(run: Run) -> TrainCase:
    """The case of a launch of `train`."""
    case = run.record.case if run.record else None
    assert isinstance(case, TrainCase), "not a launch of `train`"
    return case


def network(run: Run) -> str:
    """The title of a panel: the network, how far it is reduced, and the minibatch."""
    return f"{network_at_any_minibatch(run)}, minibatch {training(run).minibatch}"


def network_at_any_minibatch(run: Run) -> str:
    """The network, and how far it is reduced."""
    case = training(run)
    plugin = registry.plugins("workload").get(case.workload)  # None if its package is not installed here
    parts = [plugin.title if isinstance(plugin, WorkloadPlugin) and plugin.title else case.workload]
    side, width = case.value("workload.image_side"), case.value("workload.width", 1)
    parts += [f"{side} px"] if side else []
    parts += [f"width {width:g}"] if width != 1 else []
    if (side or width != 1) and plugin is not None:
        parts.append(f"1/{work_factor(case):.3g} of the work")
    return ", ".join(parts)


def by_network(runs: Iterable[Run]) -> Groups:
    """Launches by experiment and network: one panel each, in the order of the networks' names."""
    return grouped(sorted(runs, key=network), lambda run: PanelKey(training(run).experiment, network(run)))


def by_network_and_level(runs: Iterable[Run]) -> Groups:
    """The same, with a panel of its own for each level of evidence that is not measured."""
    return grouped(
        sorted(runs, key=_network_and_level), lambda run: PanelKey(training(run).experiment, _network_and_level(run))
    )


def _network_and_level(run: Run) -> str:
    assert run.record is not None, "not a launch of `train`"
    level = "" if run.record.evidence == "measured" else f"; {run.record.evidence_text}"
    return network(run) + level


def heading(key: PanelKey, groups: Groups) -> str:
    """A panel's title: the network, and the experiment if another one has the same network."""
    same_network = [other for other in groups if other.network == key.network]
    return key.network if len(same_network) == 1 else f"{key.network} ({key.experiment})"


def arm(run: Run) -> str:
    """The arm of a launch, which is its series; with plain buffers a series of its own, which says so."""
    case = run.record.case if run.record else None
    name = str(run.row["arm"]) if "arm" in run.row else getattr(case, "arm", "")
    return f"{name} (plain buffers)" if case is not None and case.buffers == "plain" else name


def by_arm(runs: list[Run]) -> dict[str, list[Run]]:
    """Launches by arm, sorted by name, so that panels and legends have the same order."""
    return dict(sorted(grouped(runs, arm).items()))


def by_arm_and_ranks(runs: Iterable[Run]) -> dict[tuple[str, int], list[Run]]:
    """Launches by arm and number of ranks, sorted."""
    return dict(sorted(grouped(runs, lambda run: (arm(run), training(run).ranks)).items()))
