"""The step of strategy parameter_server for the simulator."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

from scaleproof.rank_programs.effects import (
    Await,
    AwaitAll,
    Charge,
    Compute,
    Effect,
    Receive,
    Send,
    Start,
    Started,
    weightless,
)
from scaleproof.spec.case import TrainCase
from scaleproof.strategies.server_placement import owners
from scaleproof.strategies.step_program import Passed, Plan, Step, plan_of_buckets
from scaleproof.workloads.networks import Network

SOCKET = 4 << 20
"""Bytes that a socket buffers: Linux's default, which nodes of fabric netns have, divided by the case's shrink."""


def simulated_step(plan: Plan, passed: Passed, update: Compute, across: bool) -> Step:
    """The step of a worker: every gradient is sent separately, over one connection to each server, and the parameters
    come back. A rank exchanges nothing with itself: what it serves stays."""
    order, sent = list(reversed(range(len(plan.layers)))), list[Started]()
    early = [index for index in order if index not in plan.late]
    if not passed:
        sent += yield from _pushed(plan, early)
    for finished_layer, before, after in passed:
        yield Compute(before, event="backward")
        sent += yield from _pushed(plan, [index for index in early if plan.layers[index] == finished_layer])
        yield Compute(after, event="backward")
    late = [index for index in order if index in plan.late]
    sent += yield from _pushed(plan, late)
    for index in [*early, *late]:
        yield Receive(plan.owners[index], from_server(index))
    yield AwaitAll(tuple(sent))
    return {}


def step_of_rank(plan: Plan, rank: int, worker: Step, update: Compute) -> Step:
    """The step of one rank: that of a worker, and before its parameters come back, what the rank serves. It waits for
    messages from the beginning on. `update`: of all parameters."""
    others, lanes = [other for other in range(plan.ranks) if other != rank], count(plan.ranks)
    arriving, mine = (
        dict[tuple[int, int], Started](),
        [index for index, owner in enumerate(plan.owners) if owner == rank],
    )
    for index in mine:
        for other in others:
            arriving[index, other] = yield Start(Receive(other, to_server(index)), next(lanes))
    for index, owner in enumerate(plan.owners):
        if owner != rank:
            arriving[index, owner] = yield Start(Receive(owner, from_server(index)), next(lanes))
    pushed, sent = yield from _pushed_by(rank, worker)
    for index in pushed:
        if index in mine:
            for other in others:
                yield Await(arriving.pop((index, other)))
            yield Charge(len(others) * int(plan.parameters[index]))
            yield Compute(update.seconds * plan.parameters[index] / sum(plan.parameters), event="update")
            for other in others:
                parameter = Send(other, weightless(plan.parameters[index]), from_server(index))
                sent.append((yield Start(parameter, other)))
    yield AwaitAll((*arriving.values(), *sent))
    return {}


def _pushed_by(rank: int, worker: Step) -> Generator[Effect, Any, tuple[list[int], list[Started]]]:
    """The worker's step up to its first receive: parameters in the order in which their gradients are ready, and what
    has been sent to other ranks."""
    pushed, sent, result = list[int](), list[Started](), None
    while not isinstance(effect := worker.send(result), Receive):
        if not isinstance(effect, Start) or not isinstance(effect.effect, Send):
            result = yield effect
            continue
        pushed.append(parameter_of(effect.effect.tag))
        if effect.effect.peer == rank:
            result = None
        else:
            result = yield effect
            sent.append(result)
    worker.close()
    return pushed, sent


def to_server(index: int) -> int:
    """Tag of a parameter's gradient."""
    return 2 * index


def from_server(index: int) -> int:
    """Tag of a parameter."""
    return 2 * index + 1


def parameter_of(tag: int) -> int:
    """The parameter that a message is about."""
    return tag // 2


def _pushed(plan: Plan, indices: Iterable[int]) -> Generator[Effect, Any, list[Started]]:
    sent = []
    for index in indices:
        gradient = Send(plan.owners[index], weightless(plan.parameters[index]), to_server(index))
        sent.append((yield Start(gradient, plan.owners[index])))
    return sent


def simulated_plan(case: TrainCase, network: Network) -> Plan:
    """Every tensor is sent separately. Large ones are sent late if the main thread has to move them."""
    plan, served = plan_of_buckets(case, network), tuple(owners(case, network))
    return replace(plan, owners=served, late=_late(case, plan.parameters, served))


def _late(case: TrainCase, sizes: Sequence[float], served: Sequence[int]) -> frozenset[int]:
    """Parameters whose gradients are sent after the backward pass. If the main thread moves messages, it cannot do so
    while it computes: a message larger than a socket's buffer waits, and so do later messages to the same server."""
    blocked, late = set[int](), set[int]()
    for index in reversed(range(len(sizes) if case.plugin("transport").moves_in_wait else 0)):
        if served[index] in blocked or sizes[index] > SOCKET / case.shrink:
            blocked.add(served[index])
            late.add(index)
    return frozenset(late)
