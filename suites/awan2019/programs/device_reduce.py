"""All-reduce of an array in a device's memory: reduced in place, or staged through the host.

Options: `staged` (0, 1); `device`: `emulated` (host memory stands for the device's, so that staging costs copies within
one memory) or `cuda`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from suite_programs.memories import CudaMemory, HostMemory, Memory, reduce_on_the_host, reduce_where_it_lies
from suite_programs.pointer_cache import gpus

from scaleproof.collectives.group import Group
from scaleproof.core.context import RankContext
from scaleproof.core.recorder import now
from scaleproof.programs.common import timed_iterations, timed_region
from scaleproof.spec import registry
from scaleproof.spec.case import AnyCase, OwnCase
from scaleproof.spec.stand_ins import stands_in
from scaleproof.transports.contract import PointToPoint


def obstacle(case: AnyCase) -> tuple[str, str] | None:
    """Device `cuda` needs a GPU, and a torch that can use it."""
    if not isinstance(case, OwnCase) or case.options.get("device") != "cuda":
        return None
    if not gpus():
        return "there is no GPU to reduce on", "run it on a machine with a GPU and its driver (libcuda.so.1)"
    import torch

    return (
        None
        if torch.cuda.is_available()
        else (
            f"torch {torch.__version__} cannot use the GPU",
            "install a torch with CUDA (https://pytorch.org/get-started)",
        )
    )


def run(context: RankContext) -> None:
    """See the module. A sample is one all-reduce on one rank."""
    case = context.case
    assert isinstance(case, OwnCase) and case.transport is not None
    transport: PointToPoint = registry.load("transport", case.transport).connect(context)
    group = Group(transport, case.collective, context.post)
    emulated = stands_in(case, "device", "cuda")
    context.facts["device_reduce"] = {"emulated": emulated}
    with timed_region(context, group):
        for nbytes in case.sizes:
            _size(context, group, transport, nbytes, emulated)


def memory_of(emulated: bool, array: np.ndarray) -> Memory:
    """The array, on the device, or in the host memory that stands in for one."""
    if emulated:
        return HostMemory(array)
    import torch

    return CudaMemory(torch.from_numpy(array).cuda(), torch.from_numpy)


def _size(context: RankContext, group: Group, transport: PointToPoint, nbytes: int, emulated: bool) -> None:
    case = context.case
    assert isinstance(case, OwnCase)
    array = group.allocate(nbytes).view(np.float32)
    array.fill(context.rank + 1)
    memory = memory_of(emulated, array)
    spare = group.allocate(nbytes).view(np.float32)
    reduce: Callable[[], None] = lambda: reduce_where_it_lies(transport, memory, spare)  # noqa: E731
    if case.options["staged"]:
        reduce = lambda: reduce_on_the_host(group, memory, spare)  # noqa: E731
    reduce()
    expected = group.world_size * (group.world_size + 1) / 2
    context.check(
        f"all_reduce.{nbytes}", bool((memory.fetch(0, memory.size) == expected).all()), f"every element is {expected:g}"
    )
    memory.put(0, np.zeros(memory.size, np.float32))  # zeros stay zeros
    for iteration in timed_iterations(context, case.warmup, case.iterations):
        context.at(iteration, f"all_reduce {nbytes} B")
        group.barrier()
        start = now()
        reduce()
        context.recorder.add("all_reduce", iteration, start, now(), nbytes)
