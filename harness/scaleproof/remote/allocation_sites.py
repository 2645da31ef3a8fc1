"""Tensors born where they are sent from: allocation-site tracing for torch on CPUs (xue2019, zero copy at the sender).

In the first step every operation runs as always, and it is noted which one allocated the buffer of each tensor that is
sent: its site, the operation and how many calls of it came before in the step. From the second step on that call writes
its result into the memory that the send takes it from. This needs a kernel of the operation that writes into given
memory; docs/allocation.md says which have none: their results are copied in every step, and counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

Shape: TypeAlias = tuple[int, ...]
Memory: TypeAlias = Callable[[Shape], np.ndarray]
"""Where a tensor of a shape is to be born: the array that its send takes it from, of the tensor's size and type."""
Site: TypeAlias = tuple[Any, int]
"""An operation and how many calls of it came before in the step."""


@dataclass(slots=True)
class BirthCounts:
    """What was sent in the step under way: born in place, or copied."""

    placed: int = 0
    copied: int = 0
    copied_bytes: int = 0


@dataclass(frozen=True, slots=True)
class _Birth:
    """A buffer as an operation made it."""

    storage: StorageWeakRef
    """Keeps the identity of the buffer's storage, not its memory: an address alone may be another buffer's by now."""
    site: Site
    arguments: tuple[Shape, ...]
    shape: Shape


@dataclass(slots=True)
class _Order:
    """What to do at a site. `shapes`: those of its result, by those of its arguments."""

    memory: Memory
    write: Any
    output: str
    sent_as: dict[Shape, Shape]
    """The shape of the tensor that is sent, where it is another view of the result."""
    shapes: dict[tuple[Shape, ...], Shape] = field(default_factory=dict)


class AllocationSites(TorchDispatchMode):
    """Use it as a context around the operations of a step, and `place` each tensor before it is sent."""

    def __init__(self) -> None:
        super().__init__()
        self.births = BirthCounts()
        self._tracing, self._unknown = False, True
        self._calls: Counter[Any] = Counter()
        self._born: dict[int, _Birth] = {}
        self._given: set[int] = set()
        self._orders: dict[Site, _Order] = {}
        self._ordered: set[Any] = set()
        self._hopeless: set[int] = set()

    def begin(self) -> None:
        """A new step starts: calls are counted from zero. It is traced when the last one copied something whose site
        was not looked for yet."""
        self._tracing, self._unknown = self._unknown, False
        self.births = BirthCounts()
        self._calls.clear()
        self._born.clear()
        self._given.clear()

    def place(self, tensor: torch.Tensor, memory: Memory) -> bool:
        """Make sure that the tensor lies where its send takes it from. True when it was born there; else it is copied,
        and its site writes there from the next step on where it can."""
        if tensor.data_ptr() in self._given and tensor.is_contiguous():
            self.births.placed += 1
            return True
        shape = tuple(tensor.shape)
        place = torch.from_numpy(memory(shape))
        place.view(shape).copy_(tensor)
        self.births.copied += 1
        self.births.copied_bytes += tensor.nbytes
        if not self._tracing:
            self._unknown |= place.data_ptr() not in self._hopeless
        elif not self._order(tensor, memory):
            self._hopeless.add(place.data_ptr())
        return False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Run an operation; where one is ordered, into given memory."""
        kwargs = kwargs or {}
        if not (self._tracing and _allocates(func)) and func not in self._ordered:
            return func(*args, **kwargs)
        site = func, self._calls[func]
        self._calls[func] += 1
        order = self._orders.get(site)
        if order is not None:
            return self._write(order, args, kwargs)
        result = func(*args, **kwargs)
        if self._tracing:
            storage = StorageWeakRef(result.untyped_storage())
            self._born[storage.cdata] = _Birth(storage, site, _shapes(args), tuple(result.shape))
        return result

    def _order(self, tensor: torch.Tensor, memory: Memory) -> bool:
        """Have the tensor's site write into the memory from the next step on; False where that cannot be."""
        born = self._born.get(tensor.untyped_storage()._cdata)
        if (
            born is None
            or born.storage.expired()
            or not tensor.is_contiguous()
            or tensor.nbytes != tensor.untyped_storage().nbytes()
        ):
            return False
        writer = _writer(born.site[0])
        if writer is None:
            return False
        renamed = {born.shape: tuple(tensor.shape)} if born.shape != tensor.shape else {}
        self._orders[born.site] = _Order(memory, *writer, renamed, {born.arguments: born.shape})
        self._ordered.add(born.site[0])
        return True

    def _write(self, order: _Order, args: Sequence[Any], kwargs: Mapping[str, Any]) -> torch.Tensor:
        arguments = _shapes(args)
        if arguments not in order.shapes:
            order.shapes[arguments] = tuple(order.write.overloadpacket(*_without_memory(args), **kwargs).shape)
        shape = order.shapes[arguments]
        out = torch.from_numpy(order.memory(order.sent_as.get(shape, shape))).view(shape)
        self._given.add(out.data_ptr())
        result: torch.Tensor = order.write(*args, **kwargs, **{order.output: out})
        return result


def _shapes(args: Sequence[Any]) -> tuple[Shape, ...]:
    return tuple(tuple(value.shape) for value in args if isinstance(value, torch.Tensor))


def _without_memory(args: Sequence[Any]) -> list[Any]:
    return [value.to("meta") if isinstance(value, torch.Tensor) else value for value in args]


@cache
def _allocates(func: Any) -> bool:
    """Whether an operation's one result is a tensor in memory of its own: no view, nothing in place."""
    returns = func._schema.returns
    return len(returns) == 1 and returns[0].alias_info is None and str(returns[0].type) == "Tensor"


@cache
def _writer(func: Any) -> tuple[Any, str] | None:
    """The form of an operation that writes into given memory with a kernel of its own, and its argument for the memory.
    Other forms of that kind that torch has are made by a machine: they run the operation as always and copy."""
    wanted = [str(argument.type) for argument in func._schema.arguments]
    for name in func.overloadpacket.overloads():
        found = getattr(func.overloadpacket, name)
        outputs = [argument.name for argument in found._schema.arguments if argument.is_out]
        given = [str(argument.type) for argument in found._schema.arguments if not argument.is_out]
        if (
            len(outputs) == 1
            and given == wanted
            and torch._C._dispatch_has_kernel_for_dispatch_key(found.name(), "CPU")
        ):
            return found, outputs[0]
    return None
