"""Simulates a training case: every rank's main thread, its communication thread, and the links between nodes, in
virtual time. Where no two messages can share a link, and where a model predicts calls between GPUs as a whole, all
ranks are computed as vectors, call by call; otherwise in the event engine, every rank by itself, or one for all that do
the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from scaleproof.rank_programs.effects import Await, AwaitAll, Collective, Compute, Effect, Receive, Start, Started
from scaleproof.simulate.buffered import buffered_nbytes
from scaleproof.simulate.case_patterns import Patterns
from scaleproof.simulate.collective_call import Call
from scaleproof.simulate.collective_exchange import Exchange
from scaleproof.simulate.cost_model import MessageCosts
from scaleproof.simulate.link_network import Network
from scaleproof.simulate.nccl.device_calls import DeviceExchange, DevicePatterns, devices_of
from scaleproof.simulate.program import Steps, exchange_plan, steps_of
from scaleproof.simulate.shared_cores import shared_cores
from scaleproof.simulate.simulated_spans import Prediction, Span
from scaleproof.simulate.training_on_engine import simulate_each_rank
from scaleproof.simulate.unequal_nodes import on_its_nodes
from scaleproof.spec.case import TrainCase
from scaleproof.spec.cluster import Cluster, slowed
from scaleproof.spec.common_case import NATIVE
from scaleproof.spec.launch_kind import calls_from_a_thread
from scaleproof.strategies.base import MIB
from scaleproof.strategies.step_program import collectives
from scaleproof.workloads.case_network import network_of
from scaleproof.workloads.jitter_model import Variation
from scaleproof.workloads.networks import Network as LayerTable
from scaleproof.workloads.profile import Profile


@dataclass(frozen=True, slots=True)
class Options:
    """Settings that are not part of a case. `symmetry` False: symmetric rounds are computed one by one, and ranks that
    do the same each by itself. `layers`: of a network that is not in the registry."""

    symmetry: bool = True
    layers: LayerTable | None = None


def simulate(
    case: TrainCase,
    profile: Profile | None,
    cluster: Cluster,
    costs: MessageCosts,
    *,
    jitter: Variation | None = None,
    seed: int = 0,
    options: Options = Options(),
) -> Prediction:
    """Simulates every step of a training case. `profile` None: no computing (compute: none). Raises SpecError for a
    strategy that cannot be simulated."""
    ranks, jitter = case.ranks, on_its_nodes(case, jitter)
    nodes = [rank * case.nodes // ranks for rank in range(ranks)]
    network = Network(slowed(cluster, case.dilation, case.shrink), costs.goodput)
    plan = exchange_plan(case, options.layers or network_of(case))
    steps = steps_of(case, plan, profile)
    if (devices := devices_of(case, cluster)) is not None:
        between = DeviceExchange(devices, network, nodes, costs)
        return _as_vectors(case, steps, between, DevicePatterns(ranks), jitter, seed)
    buffer = buffered_nbytes(case)
    exchange = Exchange(network, nodes, costs, case.value("strategy.channels", 1), options.symmetry, buffer)
    patterns = Patterns(case, plan.groups)
    calls = [patterns.of(call) for call in collectives(steps.first)]
    decided_late = bool(buffer) and case.value("strategy.bucket_order", "ready") != "ready"
    together = exchange.exact(calls) and not decided_late and shared_cores(case) is None
    if together and not any(isinstance(each, Receive) for each in steps.first):
        return _as_vectors(case, steps, exchange, patterns, jitter, seed)
    return simulate_each_rank(
        case,
        profile,
        cluster,
        costs,
        buffer=buffer,
        jitter=jitter,
        seed=seed,
        layers=options.layers,
        fold=options.symmetry,
    )


def _as_vectors(
    case: TrainCase,
    steps: Steps,
    exchange: Exchange,
    patterns: Patterns | DevicePatterns,
    jitter: Variation | None,
    seed: int,
) -> Prediction:
    """All ranks together."""
    ranks, clocks, prediction = case.ranks, _RankClocks(exchange, case, patterns), Prediction(case)
    for step in range(case.warmup + case.steps):
        if step == case.warmup:
            clocks.barrier()
            prediction.start = clocks.at.copy()
        factors = jitter.factors(ranks, seed, step) if jitter else 1.0
        prediction.spans += clocks.run_step(step, steps.of(step), factors)
    clocks.barrier()
    prediction.spans += clocks.calls()
    prediction.spans = [replace(span, warmup=span.step < case.warmup) for span in prediction.spans]
    prediction.end = clocks.at.copy()
    return prediction


class _RankClocks:
    """State of all ranks. `at`: the time of each rank's main thread, in s."""

    def __init__(self, exchange: Exchange, case: TrainCase, patterns: Patterns | DevicePatterns) -> None:
        self.exchange, self.patterns, self.order = exchange, patterns, case.value("strategy.bucket_order", "ready")
        self._by_main = case.value("strategy.communication", "thread") == "main" and case.collective != NATIVE
        """Calls make no progress until the main thread waits for them."""
        self._handover = exchange.costs.handover if calls_from_a_thread(case) else 0.0
        """s from the main thread to the one that makes the calls, and back."""
        fusion_mib = case.value("transport.fusion_mib")
        self.fusion = None if fusion_mib is None else fusion_mib * MIB / case.shrink
        """Most bytes that the transport fuses into one call; None: it fuses nothing."""
        self.at = np.zeros(patterns.ranks)
        self._pending: list[Call] = []
        self._calls: list[Call] = []
        self._before = 0
        """Calls of this step and the one before it, and how many are of the latter."""
        self._unrecorded: list[tuple[int, Call]] = []

    def barrier(self) -> None:
        """A barrier; pending calls finish first."""
        while self._pending:
            self._run_next()
        self.at = np.full(len(self.at), float(max(self.at.max(), self.exchange.free.max())))

    def run_step(self, step: int, effects: Sequence[Effect], factors: np.ndarray | float) -> list[Span]:
        """Run all effects of step number `step` and return its spans."""
        began, spans = self.at, list[Span]()
        self._calls = self._calls[self._before :]
        self._before = len(self._calls)
        for effect in effects:
            if isinstance(effect, Compute):
                self._compute(effect, step, factors, spans)
            elif isinstance(effect, Start):
                self._submit(effect, step)
            elif isinstance(effect, Await):
                self._wait([effect.started], effect.event, effect.nbytes, step, spans)
            elif isinstance(effect, AwaitAll):
                self._wait(effect.started, "wait", 0, step, spans)
        spans.append(Span("step", step, began, self.at))
        return [*spans, *self.calls()]

    def calls(self) -> list[Span]:
        """Spans of calls that have finished since the last time."""
        spans, unfinished = [], []
        for step, call in self._unrecorded:
            if len(call.end):
                spans.append(Span("queue", step, call.ready - self._handover, call.start, int(call.nbytes)))
                spans.append(Span("communication", step, call.start, call.end, int(call.nbytes)))
            else:
                unfinished.append((step, call))
        self._unrecorded = unfinished
        return spans

    def _compute(self, item: Compute, step: int, factors: np.ndarray | float, spans: list[Span]) -> None:
        before, self.at = self.at, self.at + item.seconds * factors
        if spans and spans[-1].event == item.event and spans[-1].end is before:
            spans[-1] = Span(item.event, step, spans[-1].start, self.at)
        else:
            spans.append(Span(item.event, step, before, self.at))

    def _submit(self, effect: Start, step: int) -> None:
        made = effect.effect
        assert isinstance(made, Collective)
        ready = self.at + self._handover
        call = Call(self.patterns.of(made), made.nbytes, ready, made.priority, effect.lane)
        self._pending.append(call)
        self._calls.append(call)
        self._unrecorded.append((step, call))

    def _wait(self, started: Sequence[Started], event: str, nbytes: int, step: int, spans: list[Span]) -> None:
        before, chosen = self.at, [self._calls[self._before + each.number] for each in started]
        if self._by_main:
            self._run_in_main_thread(chosen)
        while self._places(chosen):
            self._run_next()
        self.at = np.maximum.reduce([before, *(call.end + self._handover for call in chosen)])
        spans.append(Span(event, step, before, self.at, nbytes))

    def _places(self, calls: Sequence[Call]) -> list[int]:
        """Where these stand among those that have not run."""
        chosen = set(map(id, calls))
        return [place for place, pending in enumerate(self._pending) if id(pending) in chosen]

    def _run_in_main_thread(self, awaited: Sequence[Call]) -> None:
        """The main thread runs calls to their end in order, up to the last of these. A call counts as started when it
        was made, although it has moved nothing since."""
        count = 1 + max(self._places(awaited), default=-1)
        chosen, self._pending = self._pending[:count], self._pending[count:]
        made = [call.ready for call in chosen]
        for call in chosen:
            call.ready = np.maximum(call.ready, self.at)
        if chosen:
            self.exchange.run(chosen)
        for call, ready in zip(chosen, made, strict=True):
            call.ready = call.start = ready

    def _run_next(self) -> None:
        """Run all pending calls, the next one by priority, or the next group that the transport fuses."""
        if self.fusion is not None:
            self._fuse(self.fusion)
            return
        if self.order == "ready":
            chosen, self._pending = self._pending, []
        else:
            free = float(self.exchange.free[0].max())
            ready = [max(float(call.ready.max()), free) for call in self._pending]
            soonest = min(ready)
            first = min(
                (index for index, when in enumerate(ready) if when <= soonest),
                key=lambda index: self._pending[index].priority,
            )
            chosen = [self._pending.pop(first)]
        self.exchange.run(chosen)

    def _fuse(self, limit: float) -> None:
        """Fuses the calls that are ready on all ranks when the channel is free, up to `limit` bytes. At least the next
        call runs."""
        calls = self._pending
        begins = max(float(calls[0].ready.max()), float(self.exchange.free[0].max()))
        count, nbytes = 1, calls[0].nbytes
        while (
            count < len(calls) and float(calls[count].ready.max()) <= begins and nbytes + calls[count].nbytes <= limit
        ):
            nbytes += calls[count].nbytes
            count += 1
        fused = Call(calls[0].pattern, nbytes, np.maximum.reduce([call.ready for call in calls[:count]]))
        self.exchange.run([fused])
        for call in calls[:count]:
            call.start, call.end = fused.start, fused.end
        self._pending = self._pending[count:]
