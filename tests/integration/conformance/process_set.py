"""What every rank of one process set does: all checks over one connection, then leave without a trace. Results go to a
file, line by line, so that a hang shows how far it came."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import cast

import numpy as np
import psutil

from scaleproof.collectives.group import Group, open_group
from scaleproof.collectives.message_schedule import schedule_of
from scaleproof.core.context import RankContext
from scaleproof.core.transport_errors import TransportError
from scaleproof.spec import registry
from scaleproof.spec.common_case import NATIVE
from scaleproof.transports.contract import Collectives, PointToPoint, Transport
from tests.integration.conformance.checks import FEW, MANY, Checked, Checks, Messages

MESSAGES, LEAVING, CHANNELS = "messages", "leaving", "channels"
"""Names of the checks that concern no collective."""
LOSS_S = 15.0
SLOW_S = 3.5
"""Longer than any transport takes to look whether its library still runs."""
LIFTED, LIFTED_RANKS = "ring", 3
"""What also runs over the sends and receives of a transport with collectives of its own, and on how many ranks at most.
"""


def check_everything(context: RankContext, results: Path) -> None:
    """Run all checks; results in `results/<rank>.jsonl`."""
    with (results / f"{context.rank}.jsonl").open("w", buffering=1) as file:

        def keep(checked: Checked) -> None:
            file.write(json.dumps(asdict(checked)) + "\n")

        threads, ports, files = set(threading.enumerate()), listening(), named_shared_memory()
        plugin = registry.get("transport", context.case.transport or "")
        transport: Transport = plugin.load().connect(context)
        further = [plugin.load().connect(context.of_channel(1))] if plugin.channels else []
        opened = listening() - ports
        names = registry.algorithms()
        if context.case.collective == NATIVE:
            names = [
                NATIVE,
                *([LIFTED] if transport.capabilities.point_to_point and context.world_size <= LIFTED_RANKS else []),
            ]
        for name in names:
            nodes = 2 if context.world_size % 2 == 0 else 1  # as if ranks stood on them; the transport need not know
            group = (
                cast(Collectives, transport)
                if name == NATIVE
                else Group(cast(PointToPoint, transport), schedule_of(name, nodes))
            )
            Checks(context, group, name, keep).collectives()
        if transport.capabilities.point_to_point:
            Messages(Checks(context, group, MESSAGES, keep), cast(PointToPoint, transport)).run()
        if further:
            _side_by_side(context, [cast(PointToPoint, each) for each in (transport, *further)], keep)
        transport.barrier()
        leaving = Checks(context, group, LEAVING, keep)
        mapped = sorted(named_shared_memory() - files)
        for each in (transport, transport, *further):
            each.close()
        elsewhere = {address for address in opened if not address.startswith(f"{context.address}:")}
        leaving.record("listens on the fabric's address only", "-", 0, not elsewhere, f"listens on {elsewhere}")
        leaving.record(
            "no thread left",
            "-",
            0,
            not set(threading.enumerate()) - threads,
            f"left {set(threading.enumerate()) - threads}",
        )
        leaving.record("no port left", "-", 0, not listening() - ports, f"left {listening() - ports}")
        leaving.record("no child left", "-", 0, not psutil.Process().children(), f"left {psutil.Process().children()}")
        (results / f"{context.rank}.mapped").write_text(json.dumps(mapped))


def _side_by_side(context: RankContext, channels: Sequence[PointToPoint], keep: Callable[[Checked], None]) -> None:
    """All-reduces on all channels at the same time, each by a thread of its own."""
    kept: list[list[Checked]] = [[] for _ in channels]

    def reduce(number: int) -> None:
        checks = Checks(context, Group(channels[number], LIFTED), CHANNELS, kept[number].append)
        for count in FEW + MANY:
            checks.all_reduce("float32", count, "sum")

    threads = [threading.Thread(target=reduce, args=(number,)) for number in range(len(channels))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    leaving = Checks(context, Group(channels[0], LIFTED), CHANNELS, keep)
    for number, checked in enumerate(kept):
        for result in checked:
            keep(result)
        done, count = len(checked), len(FEW + MANY)
        leaving.record(f"calls of channel {number}", "float32", count, done == count, f"{done} of {count} were made")


def a_peer_dies(context: RankContext, results: Path) -> None:
    """The last rank kills itself."""
    _go_on_without(context, results, lambda group: os.kill(os.getpid(), signal.SIGKILL))


def a_peer_leaves(context: RankContext, results: Path) -> None:
    """The last rank fails and closes its transport, as a program does that raises."""
    _go_on_without(context, results, _close_and_fail)


def a_peer_is_slow(context: RankContext, results: Path) -> None:
    """The last rank comes SLOW_S late to an all-reduce. Writes down how many seconds each rank took, and the sum."""
    group = open_group(context)
    buffer, start = np.ones(10_007, np.float32), time.monotonic()
    if context.rank == context.world_size - 1:
        time.sleep(SLOW_S)
    group.all_reduce(buffer).wait()
    (results / f"{context.rank}.slow").write_text(json.dumps([time.monotonic() - start, float(buffer[0])]))
    group.close()


def _go_on_without(context: RankContext, results: Path, leave: Callable[[Collectives], None]) -> None:
    """All but the last rank keep reducing and write down what came of it and after how many seconds: what the last one
    has finished, others may not have."""
    group = open_group(context)
    buffer = np.ones(10_007, np.float32)
    start, outcome = time.monotonic(), "no error"
    try:
        group.all_reduce(buffer).wait()
        if context.rank == context.world_size - 1:
            leave(group)
        start = time.monotonic()
        while time.monotonic() - start < LOSS_S:
            group.all_reduce(buffer).wait()
    except TransportError as error:
        outcome = type(error).__name__
    group.close()
    (results / f"{context.rank}.loss").write_text(json.dumps([outcome, time.monotonic() - start]))


def _close_and_fail(group: Collectives) -> None:
    try:
        raise SystemExit("left early, as the test wants it")
    finally:
        group.close()


def listening() -> set[str]:
    """Addresses and ports on which this process accepts connections; an IPv4 address served by an IPv6 socket counts as
    itself."""
    connections = psutil.Process().net_connections(kind="tcp")
    return {
        f"{connection.laddr.ip.removeprefix('::ffff:')}:{connection.laddr.port}"
        for connection in connections
        if connection.status == psutil.CONN_LISTEN
    }


def named_shared_memory() -> set[str]:
    """Files under /dev/shm that this process has mapped."""
    return {line.split()[5] for line in Path("/proc/self/maps").read_text().splitlines() if " /dev/shm/" in line}
