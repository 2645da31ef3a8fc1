"""Collective calls of all ranks in the event engine, for networks on which messages share links."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scaleproof.simulate.call_schedules import CallSchedules
from scaleproof.simulate.collective_call import Call
from scaleproof.simulate.cost_model import MessageCosts
from scaleproof.simulate.engine.engine import Engine
from scaleproof.simulate.engine.flow_network import NONE
from scaleproof.simulate.link_network import Network


def run_calls(
    network: Network,
    nodes: Sequence[int],
    costs: MessageCosts,
    calls: Sequence[Call],
    free: np.ndarray,
    buffer: float = 0.0,
) -> None:
    """Fills in the calls' starts and ends, and updates `free` (when each channel, a row, of each rank is free, in s).
    Calls of one channel run in their order; the channels of a rank run concurrently and share its links. `buffer`:
    bytes that a connection takes before its receiver reads."""
    ranks, engine = free.shape[1], Engine(network.capacities)
    schedules = CallSchedules(engine, network, nodes, costs, buffer)
    last = [engine.work(at, count=ranks) for at in free]
    carried = []
    for call in calls:
        ready = engine.work(call.ready, count=ranks)
        tasks = engine.call(schedules.of(call.pattern, call.nbytes, call.channel), np.full(ranks, NONE))
        engine.after(tasks, ready)
        engine.after(tasks, last[call.channel])
        last[call.channel] = tasks
        carried.append(tasks)
    engine.run()
    for call, tasks in zip(calls, carried, strict=True):
        call.start, call.end = engine.start[tasks].copy(), engine.end[tasks].copy()
    for channel, tasks in enumerate(last):
        free[channel] = engine.end[tasks]
