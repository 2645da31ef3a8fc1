"""The program of the preflight among the ranks of an experiment, run by the same launcher, on the same interface, with
as many ranks.

Every rank reports how names resolve, which peers it reaches, how many ports it can open, its limits, and the speed of
its core. launch/preflight/rank_preflight.py judges the reports."""

from __future__ import annotations

import os
import resource
import socket
import statistics
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from scaleproof.core.context import RankContext
from scaleproof.core.handshake import Refused, answer, prove
from scaleproof.rank.clock_offsets import compared

PAIR_S = 2.0
"""How long one connection may take."""
MEET_S = 20.0
ALL_PAIRS = 64
"""Ranks up to which every pair is tried; with more ranks each rank tries this many of its predecessors."""
SPARE_PORTS = 4
SNIFF_SIDE, SNIFF_S = 192, 0.03
"""The sniff test multiplies float32 matrices of this side for this time. The median counts: other work on the core
shows in it."""


def run(context: RankContext) -> None:
    """Write all answers into the facts as `preflight`."""
    context.at(0, "preflight")
    answers: dict[str, Any] = {"host": _host(), **_names(), "limits": _limits()}
    listener, answers["ports"], answers["port_error"] = _ports(context)
    own = [context.address, listener and listener.getsockname()[1], answers["host"]]
    addresses = context.rendezvous.exchange("preflight", context.rank, context.world_size, own, MEET_S)
    answers["unreachable"] = (
        _connect(context, listener, [(address, port) for address, port, _ in addresses]) if listener is not None else {}
    )
    if not any(
        context.rendezvous.exchange(
            "preflight.unreachable", context.rank, context.world_size, len(answers["unreachable"]), MEET_S
        )
    ):
        with compared(context):
            pass
    local = [rank for rank, (_, _, host) in enumerate(addresses) if _kernel(host) == _kernel(answers["host"])].index(
        context.rank
    )
    # Ranks beyond the number of cores would slow each other down.
    answers["gflops"] = _sniff(context) if local < len(os.sched_getaffinity(0)) else None
    context.facts["preflight"] = answers


def _host() -> str:
    """An id of this machine and its boot; ranks with the same id share a clock."""
    path = Path("/proc/sys/kernel/random/boot_id")
    return f"{socket.gethostname()}/{path.read_text().strip() if path.exists() else ''}"


def _kernel(host: str) -> str:
    """The boot id alone: nodes of namespaces have different names and share the machine's cores."""
    return host.partition("/")[2] or host


def _names() -> dict[str, dict[str, str]]:
    """`resolves`: name to its first address; `unresolved`: name to the reason why it has none."""
    resolves, unresolved = {}, {}
    for name in ("localhost", socket.gethostname()):
        try:
            resolves[name] = str(socket.getaddrinfo(name, None)[0][4][0])
        except OSError as error:
            unresolved[name] = str(error.strerror or error)
    return {"resolves": resolves, "unresolved": unresolved}


def _limits() -> dict[str, int]:
    """The limits of this process, which its launcher set: locked memory in bytes, open files; -1: no limit."""
    return {
        "memlock": resource.getrlimit(resource.RLIMIT_MEMLOCK)[0],
        "files": resource.getrlimit(resource.RLIMIT_NOFILE)[0],
    }


def _ports(context: RankContext) -> tuple[socket.socket | None, int, str]:
    """A listener, how many ports could be open at the same time (requested: one per rank and some spare ones), and the
    reason why not more."""
    taken: list[socket.socket] = []
    error = ""
    family = socket.AF_INET6 if ":" in context.address else socket.AF_INET
    try:
        for _ in range(context.world_size + SPARE_PORTS):
            taken.append(socket.create_server((context.address, 0), family=family, backlog=context.world_size + 8))
    except OSError as failed:
        error = f"{context.address}: {failed.strerror or failed}"
    for opened in taken[1:]:
        opened.close()
    return (taken[0] if taken else None), len(taken), error


def _connect(context: RankContext, listener: socket.socket, addresses: list[tuple[str, int | None]]) -> dict[int, str]:
    """Peers that could not be reached, and the reason. The higher rank of a pair connects, from the fabric's
    address."""
    expected = {peer for peer in range(context.world_size) if context.rank in _partners(peer)}
    server = threading.Thread(target=_serve, args=(context, listener, expected), daemon=True)
    server.start()
    unreachable = {}
    for peer in _partners(context.rank):
        address, port = addresses[peer]
        if port is None:
            unreachable[peer] = "it has no port to listen on"
            continue
        try:
            with socket.create_connection((address, port), PAIR_S, (context.address, 0)) as opened:
                prove(opened, context.token, context.launch_id, context.rank, PAIR_S)
        except (OSError, Refused) as error:
            unreachable[peer] = str(error) or type(error).__name__
    server.join(PAIR_S * 2)
    listener.close()
    return unreachable


def _partners(rank: int) -> range:
    return range(max(rank - ALL_PAIRS, 0), rank)


def _serve(context: RankContext, listener: socket.socket, expected: set[int]) -> None:
    """Answer until all expected peers have connected, or none connects for PAIR_S."""
    listener.settimeout(PAIR_S)
    while expected:
        try:
            connection = listener.accept()[0]
        except OSError:
            return
        with connection:
            try:
                expected.discard(answer(connection, context.token, context.launch_id))
            except (OSError, Refused):  # the other side reports the error
                continue


def _sniff(context: RankContext) -> float:
    """GFLOP/s of one rank's threads."""
    matrix = np.full((SNIFF_SIDE, SNIFF_SIDE), 1e-3, np.float32)
    result = matrix @ matrix
    times = list[float]()
    until = time.monotonic() + SNIFF_S
    while time.monotonic() < until or len(times) < 3:
        start = time.perf_counter()
        np.matmul(matrix, matrix, out=result)
        times.append(time.perf_counter() - start)
    return 2 * SNIFF_SIDE**3 / statistics.median(times) / 1e9
