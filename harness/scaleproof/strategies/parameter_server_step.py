"""The step of strategy parameter_server for the simulator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from scaleproof.spec.case import TrainCase
from scaleproof.strategies.server_placement import owners
from scaleproof.strategies.step_program import Compute, Item, Passed, Plan, Pushed, Served, plan_of_buckets
from scaleproof.workloads.networks import Network

SOCKET = 4 << 20
"""Bytes that a socket buffers: Linux's default, which nodes of fabric netns have, divided by the case's shrink."""


def simulated_step(plan: Plan, passed: Passed, update: Compute, across: bool) -> list[Item]:
    """Every gradient is sent separately."""
    items: list[Item] = []
    order = list(reversed(range(len(plan.layers))))
    early = [index for index in order if index not in plan.late]
    if not passed:
        items += [Pushed(index) for index in early]
    for finished_layer, before, after in passed:
        items.append(Compute("backward", before))
        items += [Pushed(index) for index in early if plan.layers[index] == finished_layer]
        items.append(Compute("backward", after))
    return [*items, *(Pushed(index) for index in order if index in plan.late), Served()]


def simulated_plan(case: TrainCase, network: Network) -> Plan:
    """Every tensor is sent separately. Large ones are sent late if the main thread has to move them."""
    plan = plan_of_buckets(case, network)
    return replace(plan, late=_late(case, plan.parameters, owners(case, network)))


def _late(case: TrainCase, sizes: Sequence[float], served: Sequence[int]) -> frozenset[int]:
    """Parameters whose gradients are sent after the backward pass. If the main thread moves messages, it cannot do so
    while it computes: a message larger than a socket's buffer waits, and so do later messages to the same server."""
    blocked, late = set[int](), set[int]()
    for index in reversed(range(len(sizes) if case.plugin("transport").moves_in_wait else 0)):
        if served[index] in blocked or sizes[index] > SOCKET / case.shrink:
            blocked.add(served[index])
            late.add(index)
    return frozenset(late)
