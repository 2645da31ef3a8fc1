"""Base of Horovod's transports: collectives and tensor fusion over either binding. How ranks join is up to each of
them."""

from __future__ import annotations

import importlib.util
import os
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from pydantic import Field

from scaleproof.core.transport_errors import TransportError
from scaleproof.spec.errors import FieldError
from scaleproof.spec.plugins import FusionOptions
from scaleproof.transports.contract import Array, Capabilities, Done, Handle, ReduceOperation, Traffic
from scaleproof.transports.horovod.framework_bindings import Binding, TensorflowBinding, TorchBinding, translated_errors

if TYPE_CHECKING:
    from scaleproof.core.context import RankContext
    from scaleproof.spec.common_case import CommonCase

NAMES = 8
"""Calls of the same kind, type and size that may be under way. Horovod identifies a call by its name, and negotiating a
new name takes about twice as long as a known one."""
FUSED_NAMES = 4096
"""The same where tensors are fused: a network has many of one size, and all of them are submitted at once."""
CYCLE_MS = 1.0
"""Horovod's default, set so that it is in the record."""
MIB = 1 << 20
REDUCTIONS = {"all_reduce", "reduce_scatter", "barrier"}
"""Calls that are all-reduces of Horovod."""
WRITTEN_S = 5.0
TIMELINE_COUNTS = {"tensors": "ALLREDUCE", "fused": "MEMCPY_IN_FUSION_BUFFER"}
TIMELINE_EVENT = '"ph": "B", "name": "{}"'
"""An event of Horovod's timeline for a tensor. Only a tensor that shares its all-reduce with others is copied into the
fusion buffer."""


class HorovodOptions(FusionOptions):
    """Options of both transports over Horovod."""

    cycle_ms: float = Field(
        CYCLE_MS, gt=0, le=100, description="How often Horovod's thread looks for submitted tensors, ms."
    )


class HorovodTransport(ABC):
    """Collectives only: Horovod has no sends and receives."""

    OPERATIONS: str
    """Library that moves the bytes, for the record."""

    def __init__(self, context: RankContext) -> None:
        self.rank, self.world_size = context.rank, context.world_size
        self.traffic = Traffic()
        self._post = context.post
        tensorflow = getattr(context.case, "framework", "torch") == "tensorflow"
        self._binding: Binding = (TensorflowBinding if tensorflow else TorchBinding)(context.post, self.OPERATIONS)
        self._calls: Counter[str] = Counter()
        self._latest: dict[str, Handle] = {}
        self._fuses, self._open = context.case.value("transport.fusion_mib") is not None, 0
        self._closed, self._reductions = False, 0
        dtypes, library = self._binding.dtypes, self._binding.library
        self.capabilities = Capabilities(
            point_to_point=False,
            one_sided=False,
            collective=True,
            dtypes=dtypes,
            progress="background",
            path=self._path(),
            library=library,
        )
        self._timeline = self._set_up(context)
        before = set(os.listdir("/proc/self/task"))
        self._join(context, self._binding)
        # Horovod's thread polls for work every millisecond, which takes a fifth of a core or more.
        context.post.polls([int(thread) for thread in set(os.listdir("/proc/self/task")) - before])
        self._facts: dict[str, Any] = {
            name: value for name, value in sorted(os.environ.items()) if name.startswith("HOROVOD_")
        }
        context.facts["horovod"] = self._facts

    @abstractmethod
    def _path(self) -> Literal["shared memory", "socket", "library's choice"]:
        """See Capabilities."""

    @abstractmethod
    def _join(self, context: RankContext, binding: Binding) -> None:
        """Set the back end's environment variables and call `binding.init()`."""

    @classmethod
    def connect(cls, context: RankContext) -> Self:
        """See Transport.connect."""
        return cls(context)

    def allocate(self, nbytes: int) -> Array:
        """Plain memory: Horovod registers none."""
        return np.empty(nbytes, np.uint8)

    def all_reduce(self, buffer: Array, operation: ReduceOperation = "sum") -> Handle:
        """See Collectives.all_reduce."""
        return self._start(
            "all_reduce",
            buffer,
            buffer.nbytes,
            lambda name: self._binding.all_reduce(buffer, operation, name, _into(buffer)),
        )

    def reduce_scatter(self, source: Array, target: Array) -> Handle:
        """See Collectives.reduce_scatter; an all-reduce of which this rank keeps its part, because Horovod's own
        reduce-scatter damages the process (docs/transports/horovod.md)."""

        def keep_part(result: Array) -> None:
            np.copyto(target, result[self.rank * target.size : (self.rank + 1) * target.size])

        return self._start(
            "reduce_scatter",
            source,
            source.nbytes,
            lambda name: self._binding.all_reduce(source.copy(), "sum", name, keep_part),
        )

    def all_gather(self, source: Array, target: Array) -> Handle:
        """See Collectives.all_gather; one more copy than the others, out of the array that Horovod allocates."""
        return self._start(
            "all_gather", source, source.nbytes, lambda name: self._binding.all_gather(source, name, _into(target))
        )

    def broadcast(self, buffer: Array, root: int = 0) -> Handle:
        """See Collectives.broadcast; only the root counts its bytes."""
        nbytes = buffer.nbytes if self.rank == root else 0
        return self._start(
            f"broadcast.{root}", buffer, nbytes, lambda name: self._binding.broadcast(buffer, root, name, _into(buffer))
        )

    def barrier(self) -> None:
        """See Transport.barrier; an all-reduce of one number."""
        number = np.zeros(1, np.float32)
        self._start(
            "barrier", number, 0, lambda name: self._binding.all_reduce(number, "sum", name, _into(number))
        ).wait()

    def close(self) -> None:
        """See Transport.close; the first rank that closes ends Horovod on all ranks."""
        if not self._closed:
            self._closed = True
            self._binding.shutdown()
            if self._timeline is not None and self._timeline.exists():
                self._facts["fusion"] = fused_tensors(self._timeline, self._reductions)

    def _set_up(self, context: RankContext) -> Path | None:
        """Set fusion as in the case. In a traced launch Horovod writes on rank 0 which tensors it fused: the file's
        path."""
        os.environ["HOROVOD_CYCLE_TIME"] = f"{context.case.value('transport.cycle_ms', CYCLE_MS):g}"
        if (fusion_mib := context.case.value("transport.fusion_mib")) is not None:
            os.environ["HOROVOD_FUSION_THRESHOLD"] = str(int(fusion_mib * MIB / context.case.shrink))
        if context.case.tracing != "full":
            return None
        path = context.folder / "horovod-timeline.json"
        os.environ["HOROVOD_TIMELINE"] = str(path)  # on every rank, else they deadlock; rank 0 writes
        return path if context.rank == 0 else None

    def _start(self, kind: str, buffer: Array, nbytes: int, call: Callable[[str], Handle]) -> Handle:
        if buffer.dtype.name not in self.capabilities.dtypes:
            raise TransportError(
                f"horovod does not take {buffer.dtype.name}; it takes {', '.join(sorted(self.capabilities.dtypes))}"
            )
        self.traffic.count(nbytes)
        if buffer.size == 0:
            return Done()
        if self._fuses and self._open == 0:
            self._calls.clear()  # so a step's tensors get the names of the step before
        key = f"{kind}.{buffer.dtype.name}.{buffer.size}"
        name = f"{key}.{self._calls[key] % (FUSED_NAMES if self._fuses else NAMES)}"
        self._calls[key] += 1
        self._reductions += kind in REDUCTIONS
        if name in self._latest:
            self._latest[name].wait()
        self._post.begin_call(kind.partition(".")[0])
        with translated_errors():
            self._latest[name] = _FusedCall(self, call(name)) if self._fuses else call(name)
        return self._latest[name]


class _FusedCall:
    """Handle of a call that may be fused with others. It counts as open until its caller waits for it, so that all
    ranks count alike, whichever calls they have seen done."""

    def __init__(self, transport: HorovodTransport, handle: Handle) -> None:
        self._transport, self._handle = transport, handle
        self._open = True
        transport._open += 1

    def test(self) -> bool:
        return self._handle.test()

    def wait(self) -> None:
        self._handle.wait()
        self._transport._open -= self._open
        self._open = False


def _into(target: Array) -> Callable[[Array], None]:
    """A callback that copies a result into `target`, unless the result lies there already."""

    def copy(result: Array) -> None:
        if result.ctypes.data != target.ctypes.data:
            np.copyto(target, result)

    return copy


def fused_tensors(timeline: Path, calls: int) -> dict[str, int]:
    """From Horovod's timeline of rank 0: number of tensors that were all-reduced, and how many of them were fused.
    Horovod's thread may still write after the shutdown: waits WRITTEN_S for all `calls`; what has not come by then is
    `missing`."""
    until = time.monotonic() + WRITTEN_S
    while True:
        text = timeline.read_text()
        found = {name: text.count(TIMELINE_EVENT.format(event)) for name, event in TIMELINE_COUNTS.items()}
        if found["tensors"] >= calls:
            return found
        if time.monotonic() > until:
            return found | {"missing": calls - found["tensors"]}
        time.sleep(0.01)


def check_fusion(case: CommonCase) -> None:
    """Raises FieldError for a case whose framework leaves Horovod nothing to fuse."""
    if case.value("transport.fusion_mib") is not None and case.value("framework") == "tensorflow":
        message = (
            "Horovod's eager calls for TensorFlow end one by one, so there is nothing to fuse; use framework 'torch'"
        )
        raise FieldError("transport.fusion_mib", message)


def built_without() -> str:
    """Which framework or controller Horovod was built without; its native libraries say so without any import."""
    spec = importlib.util.find_spec("horovod")
    folder = Path(spec.origin).parent if spec and spec.origin else Path()
    for framework in ("torch", "tensorflow"):
        libraries = list((folder / framework).glob("mpi_lib*.so"))
        if not libraries:
            return f"built without {framework}"
        if not any(b"GlooContext" in library.read_bytes() for library in libraries):
            return f"built without Gloo for {framework}"
    return ""
