"""Allocates tensors in their send buffers by allocation-site tracing, for torch on CPUs (xue2019, zero copy at the
sender).

In the first step all operations run as usual. For each tensor that is sent, its allocation site is recorded: the
operation that allocated its buffer, and the number of earlier calls of that operation in the step. From the second step
on, that call writes its result into the send buffer. This needs a kernel of the operation that can write into existing
memory; docs/allocation.md lists operations without one. Their results are copied in every step, and counted.
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
"""Returns the send buffer of a tensor by its shape: an array of the tensor's size and type."""
Site: TypeAlias = tuple[Any, int]
"""An operation, and the number of its earlier calls in the step."""


@dataclass(slots=True)
class BirthCounts:
    """Tensors sent in the current step: allocated in their send buffer (`placed`), or copied into it."""

    placed: int = 0
    copied: int = 0
    copied_bytes: int = 0


@dataclass(frozen=True, slots=True)
class _Birth:
    """A buffer that an operation allocated."""

    storage: StorageWeakRef
    """Keeps the identity of the storage, but not its memory: an address may be reused by another buffer."""
    site: Site
    arguments: tuple[Shape, ...]
    shape: Shape


@dataclass(slots=True)
class _Redirection:
    """An allocation site whose result is written into a send buffer. `write`, `output`: the form of the operation that
    writes into existing memory, and its argument for the memory; `shapes`: shape of the result by the shapes of the
    arguments."""

    memory: Memory
    write: Any
    output: str
    sent_as: dict[Shape, Shape]
    """Shape of the tensor that is sent, by the shape of the result, if it is another view of the result."""
    shapes: dict[tuple[Shape, ...], Shape] = field(default_factory=dict)


class AllocationSites(TorchDispatchMode):
    """Use it as a context around the operations of a step, and `place` each tensor before it is sent."""

    def __init__(self) -> None:
        super().__init__()
        self.births = BirthCounts()
        self._tracing, self._unknown = False, True
        self._calls: Counter[Any] = Counter()
        self._born: dict[int, _Birth] = {}
        self._provided: set[int] = set()
        self._redirections: dict[Site, _Redirection] = {}
        self._redirected: set[Any] = set()
        self._not_redirectable: set[int] = set()

    def begin(self) -> None:
        """A new step starts and calls are counted from zero. The step is traced if the last step copied a tensor whose
        site has not been searched for."""
        self._tracing, self._unknown = self._unknown, False
        self.births = BirthCounts()
        self._calls.clear()
        self._born.clear()
        self._provided.clear()

    def place(self, tensor: torch.Tensor, memory: Memory) -> bool:
        """Make sure that the tensor is in its send buffer. True if it was allocated there. Otherwise it is copied, and
        its site writes into the buffer from the next step on, if it can."""
        if tensor.data_ptr() in self._provided and tensor.is_contiguous():
            self.births.placed += 1
            return True
        shape = tuple(tensor.shape)
        target = torch.from_numpy(memory(shape))
        target.view(shape).copy_(tensor)
        self.births.copied += 1
        self.births.copied_bytes += tensor.nbytes
        if not self._tracing:
            self._unknown |= target.data_ptr() not in self._not_redirectable
        elif not self._redirect(tensor, memory):
            self._not_redirectable.add(target.data_ptr())
        return False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Run an operation; at a redirected site its result goes into the send buffer."""
        kwargs = kwargs or {}
        if not (self._tracing and _allocates(func)) and func not in self._redirected:
            return func(*args, **kwargs)
        site = func, self._calls[func]
        self._calls[func] += 1
        redirection = self._redirections.get(site)
        if redirection is not None:
            return self._write(redirection, args, kwargs)
        result = func(*args, **kwargs)
        if self._tracing:
            storage = StorageWeakRef(result.untyped_storage())
            self._born[storage.cdata] = _Birth(storage, site, _shapes(args), tuple(result.shape))
        return result

    def _redirect(self, tensor: torch.Tensor, memory: Memory) -> bool:
        """Redirect the tensor's allocation site to the memory from the next step on; False if that is impossible."""
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
        self._redirections[born.site] = _Redirection(memory, *writer, renamed, {born.arguments: born.shape})
        self._redirected.add(born.site[0])
        return True

    def _write(self, redirection: _Redirection, args: Sequence[Any], kwargs: Mapping[str, Any]) -> torch.Tensor:
        arguments = _shapes(args)
        if arguments not in redirection.shapes:
            redirection.shapes[arguments] = tuple(
                redirection.write.overloadpacket(*_without_memory(args), **kwargs).shape
            )
        shape = redirection.shapes[arguments]
        out = torch.from_numpy(redirection.memory(redirection.sent_as.get(shape, shape))).view(shape)
        self._provided.add(out.data_ptr())
        result: torch.Tensor = redirection.write(*args, **kwargs, **{redirection.output: out})
        return result


def _shapes(args: Sequence[Any]) -> tuple[Shape, ...]:
    return tuple(tuple(value.shape) for value in args if isinstance(value, torch.Tensor))


def _without_memory(args: Sequence[Any]) -> list[Any]:
    return [value.to("meta") if isinstance(value, torch.Tensor) else value for value in args]


@cache
def _allocates(func: Any) -> bool:
    """Whether an operation has a single result, a tensor in newly allocated memory: no view, not in place."""
    returns = func._schema.returns
    return len(returns) == 1 and returns[0].alias_info is None and str(returns[0].type) == "Tensor"


@cache
def _writer(func: Any) -> tuple[Any, str] | None:
    """The overload of an operation with a kernel that writes into existing memory, and its argument for the memory.
    Generated overloads without such a kernel are skipped: they run the normal operation and copy its result."""
    argument_types = [str(argument.type) for argument in func._schema.arguments]
    for name in func.overloadpacket.overloads():
        overload = getattr(func.overloadpacket, name)
        outputs = [argument.name for argument in overload._schema.arguments if argument.is_out]
        overload_types = [str(argument.type) for argument in overload._schema.arguments if not argument.is_out]
        if (
            len(outputs) == 1
            and overload_types == argument_types
            and torch._C._dispatch_has_kernel_for_dispatch_key(overload.name(), "CPU")
        ):
            return overload, outputs[0]
    return None
