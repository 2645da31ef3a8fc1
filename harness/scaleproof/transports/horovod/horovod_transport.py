"""What Horovod's two back ends share: its collectives, its bindings for torch and TensorFlow, tensor fusion. How ranks
join is each one's own."""

from __future__ import annotations

import importlib.util
import os
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self

import numpy as np

from scaleproof.core.transport_errors import PeerLost, TransportError
from scaleproof.spec.errors import FieldError
from scaleproof.transports.contract import Array, Capabilities, Done, Handle, ReduceOperation, Traffic

if TYPE_CHECKING:
    from scaleproof.core.board import Post
    from scaleproof.core.context import RankContext
    from scaleproof.spec.case import CommonCase

POLL_S = 50e-6
"""Horovod's own wait spins, which takes the core from a peer when ranks are as many as cores."""
NAMES = 8
"""Calls of the same kind, type and size that may be under way: Horovod keys a call by its name, and negotiates a new
one about twice as long as a known one."""
FUSED_NAMES = 4096
"""The same where tensors are fused: a network has many of one size, and all of them are handed over at once."""
CYCLE_MS = 1
"""Horovod's default, set so that it is in the record."""
MIB = 1 << 20
PEER_IS_GONE = ("has been shut down", "Connection closed by peer", "Connection reset by peer", "Broken pipe")
BEGUN = '"ph": "B", "name": "{}"'
"""How Horovod's timeline says that something began for a tensor; only one that shares its all-reduce with others is
copied into the fusion buffer."""


class Binding(Protocol):
    """What this transport needs of Horovod's binding for one framework. `then` gets the result as an array when the
    call is done."""

    dtypes: frozenset[str]
    library: str

    def init(self) -> None:
        """Join the ranks that the environment names."""

    def shutdown(self) -> None:
        """Leave."""

    def place(self) -> tuple[int, int]:
        """Rank and number of ranks, as Horovod counts them."""

    def all_reduce(self, buffer: Array, operation: ReduceOperation, name: str, then: Callable[[Array], None]) -> Handle:
        """Reduce a copy or the buffer itself."""

    def all_gather(self, source: Array, name: str, then: Callable[[Array], None]) -> Handle:
        """Horovod allocates the result."""

    def broadcast(self, buffer: Array, root: int, name: str, then: Callable[[Array], None]) -> Handle:
        """Send the root's buffer to all."""


class HorovodTransport(ABC):
    """Collectives only: Horovod has no sends and receives."""

    OPERATIONS: str
    """What moves the bytes, for the record."""

    def __init__(self, context: RankContext) -> None:
        self.rank, self.world_size = context.rank, context.world_size
        self.traffic = Traffic()
        self._post = context.post
        tensorflow = getattr(context.case, "framework", "torch") == "tensorflow"
        self._binding: Binding = (TensorflowBinding if tensorflow else TorchBinding)(context.post, self.OPERATIONS)
        self._calls: Counter[str] = Counter()
        self._latest: dict[str, Handle] = {}
        self._fuses, self._open = context.case.value("transport.fusion_mib") is not None, 0
        self._closed = False
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
        # Horovod looks for work every millisecond, which takes a fifth of a core and more.
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
        """Set the back end's variables and call `binding.init()`."""

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
        """See Collectives.reduce_scatter; an all-reduce of which this rank keeps its part, because Horovod's own harms
        the process (docs)."""

        def keep(result: Array) -> None:
            np.copyto(target, result[self.rank * target.size : (self.rank + 1) * target.size])

        return self._start(
            "reduce_scatter",
            source,
            source.nbytes,
            lambda name: self._binding.all_reduce(source.copy(), "sum", name, keep),
        )

    def all_gather(self, source: Array, target: Array) -> Handle:
        """See Collectives.all_gather; one copy more than the others, out of the array that Horovod allocates."""
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
        mark = np.zeros(1, np.float32)
        self._start("barrier", mark, 0, lambda name: self._binding.all_reduce(mark, "sum", name, _into(mark))).wait()

    def close(self) -> None:
        """See Transport.close; every rank's Horovod ends when the first one asks for it."""
        if not self._closed:
            self._closed = True
            self._binding.shutdown()
            if self._timeline is not None and self._timeline.exists():
                self._facts["fusion"] = fused_tensors(self._timeline)

    def _set_up(self, context: RankContext) -> Path | None:
        """Fusion as the case asks for it; a traced launch has Horovod write on rank 0 which tensors it fused."""
        os.environ["HOROVOD_CYCLE_TIME"] = str(CYCLE_MS)
        if (fusion_mib := context.case.value("transport.fusion_mib")) is not None:
            os.environ["HOROVOD_FUSION_THRESHOLD"] = str(int(fusion_mib * MIB / context.case.shrink))
        if context.case.tracing != "full":
            return None
        path = context.folder / "horovod-timeline.json"
        os.environ["HOROVOD_TIMELINE"] = str(path)  # on every rank, or they wait for each other for ever; rank 0 writes
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
            self._calls.clear()  # a step's tensors then get the names that they had in the step before
        key = f"{kind}.{buffer.dtype.name}.{buffer.size}"
        name = f"{key}.{self._calls[key] % (FUSED_NAMES if self._fuses else NAMES)}"
        self._calls[key] += 1
        if name in self._latest:
            self._latest[name].wait()
        self._post.entered(kind.partition(".")[0])
        with translated():
            self._latest[name] = _Waited(self, call(name)) if self._fuses else call(name)
        return self._latest[name]


class _Waited:
    """Handle of a call that may be fused with others. It is open until its caller waits for it, so that all ranks count
    alike whatever they see done."""

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


class TorchBinding:
    """horovod.torch: asynchronous, in place on NumPy's memory."""

    dtypes = frozenset({"float16", "float32", "float64", "int32", "int64"})

    def __init__(self, post: Post, operations: str) -> None:
        import horovod.torch
        import torch

        self._post, self._hvd, self._torch = post, horovod.torch, torch
        self.library = f"horovod {horovod.__version__} {operations}, torch {torch.__version__}"
        self.init, self.shutdown = horovod.torch.init, horovod.torch.shutdown

    def place(self) -> tuple[int, int]:
        """See Binding."""
        return self._hvd.rank(), self._hvd.size()

    def all_reduce(self, buffer: Array, operation: ReduceOperation, name: str, then: Callable[[Array], None]) -> Handle:
        """See Binding."""
        reduction = self._hvd.Sum if operation == "sum" else self._hvd.Max
        return self._started(self._hvd.allreduce_async_(self._torch.from_numpy(buffer), op=reduction, name=name), then)

    def all_gather(self, source: Array, name: str, then: Callable[[Array], None]) -> Handle:
        """See Binding."""
        return self._started(self._hvd.allgather_async(self._torch.from_numpy(source), name=name), then)

    def broadcast(self, buffer: Array, root: int, name: str, then: Callable[[Array], None]) -> Handle:
        """See Binding."""
        return self._started(
            self._hvd.broadcast_async_(self._torch.from_numpy(buffer), root_rank=root, name=name), then
        )

    def _started(self, handle: int, then: Callable[[Array], None]) -> Handle:
        return _TorchCall(self._post, self._hvd, handle, then)


class TensorflowBinding:
    """horovod.tensorflow: eager, so a call is done when it returns; results are copied back."""

    dtypes = frozenset({"float16", "float32", "float64", "int8", "uint8", "int32", "int64"})

    def __init__(self, post: Post, operations: str) -> None:
        import horovod.tensorflow
        import tensorflow

        self._post, self._hvd, self._tensor = post, horovod.tensorflow, tensorflow.convert_to_tensor
        self.library = f"horovod {horovod.__version__} {operations}, tensorflow {tensorflow.__version__}"
        self.init, self.shutdown = horovod.tensorflow.init, horovod.tensorflow.shutdown

    def place(self) -> tuple[int, int]:
        """See Binding."""
        return self._hvd.rank(), self._hvd.size()

    def all_reduce(self, buffer: Array, operation: ReduceOperation, name: str, then: Callable[[Array], None]) -> Handle:
        """See Binding."""
        reduction = self._hvd.Sum if operation == "sum" else self._hvd.Max
        return self._blocking(lambda: self._hvd.allreduce(self._tensor(buffer), op=reduction, name=name), then)

    def all_gather(self, source: Array, name: str, then: Callable[[Array], None]) -> Handle:
        """See Binding."""
        return self._blocking(lambda: self._hvd.allgather(self._tensor(source), name=name), then)

    def broadcast(self, buffer: Array, root: int, name: str, then: Callable[[Array], None]) -> Handle:
        """See Binding."""
        return self._blocking(lambda: self._hvd.broadcast(self._tensor(buffer), root_rank=root, name=name), then)

    def _blocking(self, call: Callable[[], Any], then: Callable[[Array], None]) -> Handle:
        self._post.wait()
        then(call().numpy())
        self._post.go_on()
        self._post.left()
        return Done()


class _TorchCall:
    """Handle over Horovod's handle number; lets go of the buffers when done."""

    def __init__(self, post: Post, hvd: Any, handle: int, then: Callable[[Array], None]) -> None:
        self._post, self._hvd, self._handle = post, hvd, handle
        self._then: Callable[[Array], None] | None = then

    def test(self) -> bool:
        with translated():
            if self._then is not None and self._hvd.poll(self._handle):
                then, self._then = self._then, None
                then(self._hvd.synchronize(self._handle).numpy())
                self._post.left()
        return self._then is None

    def wait(self) -> None:
        if self.test():
            return
        self._post.wait()
        while not self.test():
            time.sleep(POLL_S)
        self._post.go_on()


def _into(target: Array) -> Callable[[Array], None]:
    """Copies a result to where it belongs unless it is there already."""

    def copy(result: Array) -> None:
        if result.ctypes.data != target.ctypes.data:
            np.copyto(target, result)

    return copy


@contextmanager
def translated() -> Iterator[None]:
    """Horovod raises RuntimeErrors, TensorFlow its OpError; both name the cause only in their text."""
    try:
        yield
    except TransportError:
        raise
    except Exception as error:
        text = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        if any(words in str(error) for words in PEER_IS_GONE):
            raise PeerLost(-1, text) from error
        raise TransportError(text) from error


def fused_tensors(timeline: Path) -> dict[str, int]:
    """From Horovod's timeline of rank 0: tensors that were all-reduced, and how many of them in company."""
    text = timeline.read_text()
    return {
        "tensors": text.count(BEGUN.format("ALLREDUCE")),
        "fused": text.count(BEGUN.format("MEMCPY_IN_FUSION_BUFFER")),
    }


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
