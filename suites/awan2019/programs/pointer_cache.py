"""All-reduce by a ring over a transport's messages, with a query of every buffer's kind before it is sent, cached or
not.

Options: `cached` (0, 1); `fresh` (1: every message is in newly allocated memory); `driver`: `emulated` (queries take
`query_us`) or `cuda` (the real driver, which needs a GPU).
"""

from __future__ import annotations

import ctypes
import ctypes.util

import numpy as np
from suite_programs.kinds import CudaDriver, Driver, EmulatedDriver, Kinds

from scaleproof.collectives.group import Group
from scaleproof.core.context import RankContext
from scaleproof.core.recorder import now
from scaleproof.programs.common import stated_cost, timed_iterations, timed_region
from scaleproof.spec import registry
from scaleproof.spec.case import AnyCase, OwnCase
from scaleproof.spec.stand_ins import stands_in
from scaleproof.transports.contract import Array, Handle, PointToPoint


def obstacle(case: AnyCase) -> tuple[str, str] | None:
    """The real driver needs a GPU."""
    if isinstance(case, OwnCase) and case.options.get("driver") == "cuda" and not gpus():
        return (
            "there is no GPU: the CUDA driver answers no queries",
            "run it on a machine with a GPU and its driver (libcuda.so.1)",
        )
    return None


def gpus() -> int:
    """Number of GPUs that the CUDA driver reports; 0 without a driver."""
    try:
        library = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    count = ctypes.c_int(0)
    return count.value if library.cuInit(0) == 0 and library.cuDeviceGetCount(ctypes.byref(count)) == 0 else 0


def run(context: RankContext) -> None:
    """See the module. A sample is one all-reduce on one rank; facts count the driver's queries in the samples."""
    case = context.case
    assert isinstance(case, OwnCase) and case.transport is not None
    transport: PointToPoint = registry.load("transport", case.transport).connect(context)
    asking = Asking(transport, Kinds(driver_of(case), bool(case.options["cached"])), bool(case.options["fresh"]))
    group = Group(asking, case.collective, context.post)
    with timed_region(context, group):
        counts = {str(nbytes): _size(context, case, group, asking, nbytes) for nbytes in case.sizes}
        context.facts["pointer_cache"] = {"emulated": stands_in(case, "driver", "cuda"), "sizes": counts}


def driver_of(case: OwnCase) -> Driver:
    """The driver that the options select."""
    if stands_in(case, "driver", "cuda"):
        return EmulatedDriver(stated_cost(case, "driver", 1e-6 * float(case.options["query_us"])))
    library = ctypes.CDLL("libcuda.so.1")
    library.cuInit(0)
    return CudaDriver(library)


class Asking:
    """A transport that queries the kind of every buffer before it sends it or receives into it."""

    def __init__(self, transport: PointToPoint, kinds: Kinds, fresh: bool) -> None:
        self._transport, self.kinds, self._fresh = transport, kinds, fresh
        self.rank, self.world_size = transport.rank, transport.world_size
        self.traffic, self.capabilities = transport.traffic, transport.capabilities
        self.allocate, self.barrier, self.close = transport.allocate, transport.barrier, transport.close
        self.messages = 0

    def send(self, buffer: Array, peer: int) -> Handle:
        """See PointToPoint.send."""
        self._count_query(buffer)
        return self._transport.send(buffer, peer)

    def recv(self, buffer: Array, peer: int) -> Handle:
        """See PointToPoint.recv."""
        self._count_query(buffer)
        return self._transport.recv(buffer, peer)

    def _count_query(self, buffer: Array) -> None:
        address = int(buffer.__array_interface__["data"][0])
        self.messages += 1
        if self._fresh:
            self.kinds.freed(address, buffer.nbytes)
        if self.kinds.of(address, buffer.nbytes) != "host":
            raise RuntimeError("this program's buffers must be host memory")


def _size(context: RankContext, case: OwnCase, group: Group, asking: Asking, nbytes: int) -> dict[str, int]:
    buffer = group.allocate(nbytes).view(np.float32)
    buffer.fill(context.rank + 1)
    group.all_reduce(buffer).wait()
    expected = group.world_size * (group.world_size + 1) / 2
    context.check(f"all_reduce.{nbytes}", bool((buffer == expected).all()), f"every element is {expected:g}")
    buffer.fill(0)  # zeros stay zeros
    queries = messages = 0
    for iteration in timed_iterations(context, case.warmup, case.iterations):
        context.at(iteration, f"all_reduce {nbytes} B")
        group.barrier()
        before = asking.kinds.queries, asking.messages
        start = now()
        group.all_reduce(buffer).wait()
        context.recorder.add("all_reduce", iteration, start, now(), nbytes)
        if iteration >= case.warmup:
            queries, messages = queries + asking.kinds.queries - before[0], messages + asking.messages - before[1]
    return {"queries": queries, "messages": messages, "calls": case.iterations}
