"""The record of a case without processes: every rank's main thread, its communication thread, and the links between
nodes, in simulated time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from scaleproof.simulate.collective_call import Call
from scaleproof.simulate.collective_exchange import Exchange
from scaleproof.simulate.collective_schedules import Pattern, grouped, pattern_of
from scaleproof.simulate.cost_model import MessageCosts
from scaleproof.simulate.jitter_model import Jitter
from scaleproof.simulate.link_network import Network
from scaleproof.simulate.parameter_servers import Tensor, serve
from scaleproof.simulate.program import algorithm_of, exchange_plan, step_program
from scaleproof.simulate.simulated_spans import Prediction, Span
from scaleproof.spec.case import NATIVE, TrainCase
from scaleproof.spec.cluster import Cluster, slowed
from scaleproof.strategies.base import MIB
from scaleproof.strategies.step_program import (
    Compute,
    Item,
    Pushed,
    Served,
    Submit,
    Wait,
)
from scaleproof.workloads.case_network import network_of
from scaleproof.workloads.networks import Network as Table
from scaleproof.workloads.profile import Profile


@dataclass(frozen=True, slots=True)
class Options:
    """What no case says. `symmetry` False: nothing is shortened; `table`: the network, where it is none of ours."""

    symmetry: bool = True
    table: Table | None = None


def simulate(
    case: TrainCase,
    profile: Profile | None,
    cluster: Cluster,
    costs: MessageCosts,
    *,
    jitter: Jitter | None = None,
    seed: int = 0,
    options: Options = Options(),
) -> Prediction:
    """Every step of a training case. `profile` None: nothing is computed (compute: none). SpecError for a strategy that
    is not simulated."""
    ranks = case.ranks
    nodes = [rank * case.nodes // ranks for rank in range(ranks)]
    network = Network(slowed(cluster, case.dilation, case.shrink), costs.goodput)
    plan = exchange_plan(case, options.table or network_of(case))
    items = step_program(case, plan, profile)
    owners = [index % (case.value("strategy.servers", 0) or ranks) for index in range(len(plan.layers))]
    tensors = [Tensor(nbytes, owner) for nbytes, owner in zip(plan.parameters, owners, strict=True)]
    update_s = profile.update_s.median * case.dilation if profile else 0.0
    exchange = Exchange(network, nodes, costs, case.value("strategy.channels", 1), options.symmetry)
    running = _Running(exchange, case, Patterns(case, plan.groups), tensors, update_s)
    running.fusion = (
        None if case.value("transport.fusion_mib") is None else case.value("transport.fusion_mib") * MIB / case.shrink
    )
    prediction = Prediction(case)
    for step in range(case.warmup + case.steps):
        if step == case.warmup:
            running.meet()
            prediction.start = running.at.copy()
        factors = jitter.factors(ranks, seed, step) if jitter else 1.0
        prediction.spans += running.step(step, items, factors)
    running.meet()
    prediction.spans += running.calls()
    prediction.spans = [replace(span, warmup=span.step < case.warmup) for span in prediction.spans]
    prediction.end = running.at.copy()
    return prediction


class Patterns:
    """The schedules of a case's calls."""

    def __init__(self, case: TrainCase, groups: int) -> None:
        self.ranks, self._algorithm = case.ranks, algorithm_of(case)
        size = case.ranks // groups
        inside = tuple(tuple(range(first, first + size)) for first in range(0, case.ranks, size))
        between = tuple(tuple(range(place, case.ranks, size)) for place in range(size))
        self._members = {"inside": inside, "between": between}
        self._known: dict[tuple[str, str], Pattern] = {}

    def of(self, item: Submit) -> Pattern:
        """Of a call's operation among its ranks."""
        key = (item.operation, item.scope)
        if key not in self._known:
            if item.scope == "all":
                self._known[key] = pattern_of(self._algorithm, item.operation, self.ranks)
            else:
                groups = self._members[item.scope]
                self._known[key] = grouped(
                    pattern_of(self._algorithm, item.operation, len(groups[0])), groups, self.ranks
                )
        return self._known[key]


class _Running:
    """Where every rank stands. `at`: its main thread, in s."""

    def __init__(
        self, exchange: Exchange, case: TrainCase, patterns: Patterns, tensors: Sequence[Tensor], update_s: float
    ) -> None:
        self.exchange, self.patterns, self.order = exchange, patterns, case.value("strategy.bucket_order", "ready")
        self._by_main = case.value("strategy.communication", "thread") == "main" and case.collective != NATIVE
        """Nobody moves a call before the main thread waits for it."""
        self.tensors, self.update_s = tensors, update_s
        self.fusion: float | None = None
        """Bytes that the transport fuses; None: the strategy's buckets go as they are."""
        self.at = np.zeros(patterns.ranks)
        self._pending: list[tuple[int, Call]] = []
        self._latest: dict[int, Call] = {}
        """The last call of each number, done or not."""
        self._untold: list[tuple[int, Call]] = []

    def meet(self) -> None:
        """A barrier, which calls under way end before."""
        while self._pending:
            self._go_on()
        self.at = np.full(len(self.at), float(max(self.at.max(), self.exchange.free.max())))

    def step(self, step: int, items: Sequence[Item], factors: np.ndarray | float) -> list[Span]:
        """All items; the step's spans."""
        began, spans = self.at, list[Span]()
        pushed: dict[int, np.ndarray] = {}
        for item in items:
            if isinstance(item, Compute):
                self._compute(item, step, factors, spans)
            elif isinstance(item, Submit):
                call = Call(
                    self.patterns.of(item), item.nbytes, self.at, item.place, item.number % len(self.exchange.free)
                )
                self._pending.append((item.number, call))
                self._latest[item.number] = call
                self._untold.append((step, call))
            elif isinstance(item, Pushed):
                pushed[item.index] = self.at
            elif isinstance(item, Served):
                self._serve(step, pushed, spans)
            else:
                self._wait(item, step, spans)
        spans.append(Span("step", step, began, self.at))
        return [*spans, *self.calls()]

    def calls(self) -> list[Span]:
        """Of calls that are done and were not told yet."""
        spans, left = [], []
        for step, call in self._untold:
            if len(call.end):
                spans.append(Span("queue", step, call.ready, call.start, int(call.nbytes)))
                spans.append(Span("communication", step, call.start, call.end, int(call.nbytes)))
            else:
                left.append((step, call))
        self._untold = left
        return spans

    def _compute(self, item: Compute, step: int, factors: np.ndarray | float, spans: list[Span]) -> None:
        before, self.at = self.at, self.at + item.seconds * factors
        if spans and spans[-1].event == item.event and spans[-1].end is before:
            spans[-1] = Span(item.event, step, spans[-1].start, self.at)
        else:
            spans.append(Span(item.event, step, before, self.at))

    def _wait(self, item: Wait, step: int, spans: list[Span]) -> None:
        if item.number is not None and item.number not in self._latest:
            return  # the first step has nothing behind it
        before = self.at
        if self._by_main:
            self._move(item.number)
        if item.number is None:
            while self._pending:
                self._go_on()
            done = [call.end for call in self._latest.values()]
        else:
            while any(number == item.number for number, _ in self._pending):
                self._go_on()
            done = [self._latest[item.number].end]
        self.at = np.maximum.reduce([before, *done])
        spans.append(Span(item.event, step, before, self.at, int(item.nbytes)))

    def _move(self, last: int | None) -> None:
        """The main thread sees calls to their end, in order: up to this one, or all. They began when it made them and
        moved nothing since."""
        numbers = [number for number, _ in self._pending]
        count = len(numbers) if last is None else numbers.index(last) + 1 if last in numbers else 0
        chosen, self._pending = [call for _, call in self._pending[:count]], self._pending[count:]
        made = [call.ready for call in chosen]
        for call in chosen:
            call.ready = np.maximum(call.ready, self.at)
        if chosen:
            self.exchange.run(chosen)
        for call, ready in zip(chosen, made, strict=True):
            call.ready = call.start = ready

    def _go_on(self) -> None:
        """Run all calls that wait, or the next one by priority."""
        if self.fusion is not None:
            self._fuse(self.fusion)
            return
        if self.order == "ready":
            chosen, self._pending = self._pending, []
        else:
            free = float(self.exchange.free[0].max())
            ready = [max(float(call.ready.max()), free) for _, call in self._pending]
            soonest = min(ready)
            first = min(
                (place for place, when in enumerate(ready) if when <= soonest),
                key=lambda place: self._pending[place][1].place,
            )
            chosen = [self._pending.pop(first)]
        self.exchange.run([call for _, call in chosen])

    def _fuse(self, limit: float) -> None:
        """What is ready on all ranks when the channel is free goes as one call, up to so many bytes; at least the next
        one."""
        calls = [call for _, call in self._pending]
        begins = max(float(calls[0].ready.max()), float(self.exchange.free[0].max()))
        count, nbytes = 1, calls[0].nbytes
        while (
            count < len(calls) and float(calls[count].ready.max()) <= begins and nbytes + calls[count].nbytes <= limit
        ):
            nbytes += calls[count].nbytes
            count += 1
        whole = Call(calls[0].pattern, nbytes, np.maximum.reduce([call.ready for call in calls[:count]]))
        self.exchange.run([whole])
        for call in calls[:count]:
            call.start, call.end = whole.start, whole.end
        self._pending = self._pending[count:]

    def _serve(self, step: int, pushed: dict[int, np.ndarray], spans: list[Span]) -> None:
        before = self.at
        done, self.at, updates = serve(self.exchange, self.tensors, pushed, before, self.update_s)
        spans.append(Span("wait", step, before, self.at))
        spans += [Span("update", step, *times) for times in updates]
        for index, end in done.items():
            nbytes = int(self.tensors[index].nbytes)
            spans.append(Span("queue", step, pushed[index], pushed[index], nbytes))
            spans.append(Span("communication", step, pushed[index], end, nbytes))
