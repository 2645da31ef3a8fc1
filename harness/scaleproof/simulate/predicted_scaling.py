"""Predicts how a training scales: throughput, efficiency and exposed communication by number of nodes, the bottleneck,
and the largest number of nodes that is still efficient."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import median
from typing import Any

from scaleproof.simulate.cost_model import FREE, CostModel, MessageCosts
from scaleproof.simulate.halved_resources import halved
from scaleproof.simulate.nccl.device_calls import ChosenCalls, chosen_calls
from scaleproof.simulate.predict import drawn_profile
from scaleproof.simulate.step_engine import Options, simulate
from scaleproof.spec.case import TrainCase, parse_case
from scaleproof.spec.cluster import Cluster, Link, cluster_of
from scaleproof.stats.prediction_intervals import ratios
from scaleproof.workloads.jitter_model import HalfAsLate, Variation, slowest
from scaleproof.workloads.networks import Network
from scaleproof.workloads.profile import Profile

DRAWS, DRAWS_AT_END = 39, 19
"""Draws from the uncertainty of costs and measured profiles. A further draw lies between the least and the largest of
39 draws with a probability of 95 %. If efficiency is a range, 19 draws are made at either end of it."""
FEW = 7
"""Draws of a strategy that is simulated message by message, which takes seconds on hundreds of nodes."""
STEPS = 20
"""Steps of a draw of stragglers. A training goes through many steps: their mean counts, not one step's time."""
ENDLESS_MBIT = 1e12


@dataclass(frozen=True, slots=True)
class Range:
    """A predicted value with its interval."""

    value: float
    low: float
    high: float

    def over(self, divisor: float) -> Range:
        """The value and its interval divided by `divisor`."""
        return Range(self.value / divisor, self.low / divisor, self.high / divisor)


@dataclass(frozen=True, slots=True)
class Point:
    """The prediction for one number of nodes. `batch`: samples per node; `gains`: share by which the step gets shorter
    when the time of one resource is halved; `calls`: of the model of NCCL, where it predicts them."""

    nodes: int
    batch: int
    compute_s: Range
    step_s: Range
    exposed_s: Range
    """Time that communication adds to the computing of a step."""
    throughput: Range
    """Samples per s of all nodes."""
    speedup: Range
    gains: Mapping[str, float]
    ranks: int = 1
    calls: Sequence[ChosenCalls] = ()

    @property
    def efficiency(self) -> Range:
        """Speed-up divided by the number of nodes."""
        return self.speedup.over(self.nodes)

    @property
    def binds(self) -> str:
        """The bottleneck: the resource whose halving would shorten the step most."""
        return max(self.gains, key=lambda name: self.gains[name])


@dataclass(frozen=True, slots=True)
class Useful:
    """The largest number of nodes whose efficiency is at least `least`: by the prediction, and by either end of its
    interval. `at_end`: why no more nodes were considered, if even the last number is efficient enough."""

    least: float
    value: int
    low: int
    high: int
    at_end: str = ""


@dataclass(frozen=True)
class Question:
    """A training whose number of nodes is left open. `fields`: fields of its case. Either `minibatch` (samples of all
    nodes) or `per_node` (samples per node) is set.

    `ranks_per_node`: of each node. `profiles`: compute profiles of a case; the middle one first, then both ends if
    compute efficiency is a range. `stragglers`: a draw is the mean of several steps then."""

    fields: Mapping[str, Any]
    network: Network
    costs: CostModel
    profiles: Callable[[TrainCase], tuple[Profile, ...]]
    minibatch: int | None = None
    per_node: int | None = None
    ranks_per_node: int = 1
    stragglers: Variation | None = None
    _points: dict[int, Point] = field(default_factory=dict)

    def case(self, nodes: int) -> TrainCase:
        """The case on `nodes` nodes. Raises pydantic's ValidationError when fields do not fit."""
        minibatch = nodes * (self.per_node or 1) if self.minibatch is None else self.minibatch
        defaults = {
            "warmup": 0,
            "steps": STEPS if self.stragglers else 1,
            "suite": "predict",
            "experiment": "predict",
            "arm": "predict",
            "program": "train",
            "fabric": "simulated",
        }
        ranks = nodes * self.ranks_per_node
        fields = {**defaults, **self.fields, "ranks": ranks, "nodes": nodes, "minibatch": minibatch}
        if servers := int(fields.get("strategy.servers", 0)):
            fields["strategy.servers"] = min(servers, ranks)
        case = parse_case(fields)
        assert isinstance(case, TrainCase)
        named = case.workload_options.model_copy(update={"name": self.network.name})
        return case.model_copy(update={"workload_options": named})  # a user's network need not be in the registry

    def counts(self, first: int, last: int) -> list[int]:
        """Possible numbers of nodes: those that divide the global minibatch."""
        every, minibatch = range(first, last + 1), self.minibatch
        return [nodes for nodes in every if minibatch is None or not minibatch % (nodes * self.ranks_per_node)]

    @cached_property
    def _alone(self) -> list[dict[int, float]]:
        """Throughput of one node, in the form of `times`."""
        return [{index: self._batch(1) / step for index, step in times.items()} for times in self.times(1)]

    def _batch(self, nodes: int) -> int:
        return self.minibatch // nodes if self.minibatch else self.per_node or 1

    def point(self, nodes: int) -> Point:
        """The prediction for `nodes` nodes, cached."""
        if nodes not in self._points:
            self._points[nodes] = self._point(nodes)
        return self._points[nodes]

    def _point(self, nodes: int) -> Point:
        case = self.case(nodes)
        profiles = self.profiles(case)
        cluster, costs = cluster_of(case), self.costs.central()
        steps = self.times(nodes)
        rates = [{index: case.minibatch / step for index, step in times.items()} for times in steps]
        computed = [self._computed(case, profile, times) for profile, times in zip(profiles, steps, strict=True)]
        exposed = [
            {index: max(step - alone[index], 0.0) for index, step in times.items()}
            for times, alone in zip(steps, computed, strict=True)
        ]
        speedups = [ratios(above, below) for above, below in zip(rates, self._alone, strict=True)]
        whole = self._step_s(case, profiles[0], cluster, costs)
        gains = {
            name: 1 - self._step_s(*changed) / whole
            for name, changed in halved(case, profiles[0], cluster, costs).items()
        }
        if self.stragglers:
            calmer = replace(self, stragglers=HalfAsLate(self.stragglers), _points={})
            gains["stragglers"] = 1 - calmer._step_s(case, profiles[0], cluster, costs) / whole
        return Point(
            nodes,
            self._batch(nodes),
            around(computed),
            around(steps),
            around(exposed),
            around(rates),
            around(speedups),
            gains,
            case.ranks,
            chosen_calls(case, self.network),
        )

    def _computed(self, case: TrainCase, profile: Profile, draws: Iterable[int]) -> dict[int, float]:
        """Compute time of a step in s, by draw; with stragglers that of the slowest rank in each step. If nodes or
        servers divide the update, it counts a node's share."""
        if self.stragglers:
            even = replace(self, stragglers=None)._computed(case, profile, draws)
            late = {draw: slowest(self.stragglers, case.ranks, draw, STEPS) for draw in draws if draw}
            return {draw: even[draw] * late.get(draw, median(late.values())) for draw in draws}
        strategy = case.plugin("strategy")
        if not (strategy.divides_update or strategy.has_servers):
            return {draw: drawn(profile, draw).step_s for draw in draws}
        cluster = cluster_of(case)
        endless = replace(cluster, links=tuple(Link(link.ends, ENDLESS_MBIT, 0.0) for link in cluster.links))
        step_s: dict[int, float] = {}
        # Without uncertainty all draws are the same object, which is simulated once.
        profiles = {draw: drawn(profile, draw) for draw in draws}
        for profile_drawn in profiles.values():
            if id(profile_drawn) not in step_s:
                step_s[id(profile_drawn)] = self._step_s(case, profile_drawn, endless, FREE)
        return {draw: step_s[id(profile_drawn)] for draw, profile_drawn in profiles.items()}

    def times(self, nodes: int) -> list[dict[int, float]]:
        """Time of a step in s, by profile and draw (draw 0: every parameter at its value)."""
        case = self.case(nodes)
        profiles = self.profiles(case)
        cluster, by_profile, central = cluster_of(case), list[dict[int, float]](), self.costs.central()
        for number, profile in enumerate(profiles):
            times = {
                draw: self._step_s(case, drawn(profile, draw), cluster, self.costs.drawn(draw), draw)
                for draw in range(1, self._draws(case, len(profiles), number) + 1)
            }
            # Of stragglers no draw is the usual one.
            usual = median(times.values()) if self.stragglers else self._step_s(case, profile, cluster, central)
            by_profile.append({0: usual, **times})
        return by_profile

    def _draws(self, case: TrainCase, profiles: int, number: int) -> int:
        """Draws of profile `number`."""
        draws = DRAWS if profiles == 1 else DRAWS_AT_END if number or self.stragglers else 0
        return min(draws, FEW) if case.plugin("strategy").has_servers else draws

    def _step_s(self, case: TrainCase, profile: Profile, cluster: Cluster, costs: MessageCosts, seed: int = 1) -> float:
        """Of one step; with stragglers the mean of several."""
        options = Options(layers=self.network)
        found = simulate(case, profile, cluster, costs, jitter=self.stragglers, seed=seed, options=options)
        return case.minibatch / found.throughput if self.stragglers else found.step_s

    def useful(self, requested: Sequence[int], least: float) -> Useful:
        """Searches between the smallest and the largest requested number of nodes. Between two requested numbers it
        assumes that efficiency falls with more nodes."""
        counts = self.counts(min(requested), max(requested))
        value, low, high = (self._last(counts, requested, end, least) for end in ("value", "low", "high"))
        most = counts[-1] * self.ranks_per_node
        last = "the minibatch has no more samples" if most == self.minibatch else "no more were requested"
        return Useful(least, value, low, high, last if value == counts[-1] else "")

    def _last(self, counts: Sequence[int], requested: Sequence[int], end: str, least: float) -> int:
        def pays(nodes: int) -> bool:
            return bool(getattr(self.point(nodes).efficiency, end) >= least)

        good = [nodes for nodes in sorted(requested) if pays(nodes)]
        if not good:
            return 0
        above = [nodes for nodes in sorted(requested) if nodes > good[-1]]
        between = counts[counts.index(good[-1]) : counts.index(above[0]) if above else len(counts)]
        return between[bisect_left(between, True, lo=1, key=lambda nodes: not pays(nodes)) - 1]


def drawn(profile: Profile, draw: int) -> Profile:
    """A draw from the intervals of a measured profile; calculated profiles have none."""
    if draw == 0 or profile.framework == "peak":
        return profile
    drawn_times = drawn_profile(profile, draw)
    assert drawn_times is not None
    return drawn_times


def around(values: Sequence[Mapping[int, float]]) -> Range:
    """The prediction of the middle profile, with an interval that covers all draws of all profiles."""
    every = [value for draws in values for value in draws.values()]
    return Range(values[0][0], min(every), max(every))
