"""Horovod's bindings for torch and TensorFlow under one interface, and its errors as ours."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from scaleproof.core.transport_errors import PeerLost, TransportError
from scaleproof.transports.contract import Array, Done, Handle, ReduceOperation

if TYPE_CHECKING:
    from scaleproof.core.board import Post

POLL_S = 50e-6
"""Horovod's own wait spins, which takes the core from a peer when there are as many ranks as cores."""
LOOK_S = 1.0
"""How often a call that is under way looks whether Horovod still runs."""
TASKS = Path("/proc/self/task")
PEER_IS_GONE = ("has been shut down", "Connection closed by peer", "Connection reset by peer", "Broken pipe")


class Binding(Protocol):
    """What the transport needs of Horovod's binding for one framework. `on_result` gets the result as an array when the
    call is done."""

    dtypes: frozenset[str]
    library: str

    def init(self) -> None:
        """Join the ranks that the environment names."""

    def shutdown(self) -> None:
        """Leave."""

    def rank_and_size(self) -> tuple[int, int]:
        """Rank and number of ranks, as Horovod counts them."""

    def all_reduce(
        self, buffer: Array, operation: ReduceOperation, name: str, on_result: Callable[[Array], None]
    ) -> Handle:
        """Reduce the buffer in place, or a copy of it."""

    def all_gather(self, source: Array, name: str, on_result: Callable[[Array], None]) -> Handle:
        """Horovod allocates the result."""

    def broadcast(self, buffer: Array, root: int, name: str, on_result: Callable[[Array], None]) -> Handle:
        """Send the root's buffer to all."""


class TorchBinding:
    """horovod.torch: asynchronous, in place on NumPy's memory."""

    dtypes = frozenset({"float16", "float32", "float64", "int32", "int64"})

    def __init__(self, post: Post, operations: str) -> None:
        import horovod.torch
        import torch

        self._post, self._hvd, self._torch = post, horovod.torch, torch
        self.library = f"horovod {horovod.__version__} {operations}, torch {torch.__version__}"
        self.shutdown = horovod.torch.shutdown
        self._threads: list[str] = []

    def init(self) -> None:
        """See Binding."""
        self._threads = started_threads(self._hvd.init, "horovod")

    def ended(self) -> bool:
        """Whether Horovod's threads have ended. Horovod never completes a call that is submitted while they end, and
        poll does not say so: six of 1,912 launches on 3 ranks that a peer left."""
        return not all((TASKS / thread).exists() for thread in self._threads)

    def rank_and_size(self) -> tuple[int, int]:
        """See Binding."""
        return self._hvd.rank(), self._hvd.size()

    def all_reduce(
        self, buffer: Array, operation: ReduceOperation, name: str, on_result: Callable[[Array], None]
    ) -> Handle:
        """See Binding."""
        reduction = self._hvd.Sum if operation == "sum" else self._hvd.Max
        return self._started(
            self._hvd.allreduce_async_(self._torch.from_numpy(buffer), op=reduction, name=name), on_result
        )

    def all_gather(self, source: Array, name: str, on_result: Callable[[Array], None]) -> Handle:
        """See Binding."""
        return self._started(self._hvd.allgather_async(self._torch.from_numpy(source), name=name), on_result)

    def broadcast(self, buffer: Array, root: int, name: str, on_result: Callable[[Array], None]) -> Handle:
        """See Binding."""
        return self._started(
            self._hvd.broadcast_async_(self._torch.from_numpy(buffer), root_rank=root, name=name), on_result
        )

    def _started(self, handle: int, on_result: Callable[[Array], None]) -> Handle:
        return _TorchCall(self._post, self._hvd, handle, on_result, self.ended)


class TensorflowBinding:
    """horovod.tensorflow: eager, so a call is done when it returns and its result is copied back."""

    dtypes = frozenset({"float16", "float32", "float64", "int8", "uint8", "int32", "int64"})

    def __init__(self, post: Post, operations: str) -> None:
        import horovod.tensorflow
        import tensorflow

        self._post, self._hvd, self._tensor = post, horovod.tensorflow, tensorflow.convert_to_tensor
        self.library = f"horovod {horovod.__version__} {operations}, tensorflow {tensorflow.__version__}"
        self.init, self.shutdown = horovod.tensorflow.init, horovod.tensorflow.shutdown

    def rank_and_size(self) -> tuple[int, int]:
        """See Binding."""
        return self._hvd.rank(), self._hvd.size()

    def all_reduce(
        self, buffer: Array, operation: ReduceOperation, name: str, on_result: Callable[[Array], None]
    ) -> Handle:
        """See Binding."""
        reduction = self._hvd.Sum if operation == "sum" else self._hvd.Max
        return self._blocking(lambda: self._hvd.allreduce(self._tensor(buffer), op=reduction, name=name), on_result)

    def all_gather(self, source: Array, name: str, on_result: Callable[[Array], None]) -> Handle:
        """See Binding."""
        return self._blocking(lambda: self._hvd.allgather(self._tensor(source), name=name), on_result)

    def broadcast(self, buffer: Array, root: int, name: str, on_result: Callable[[Array], None]) -> Handle:
        """See Binding."""
        return self._blocking(lambda: self._hvd.broadcast(self._tensor(buffer), root_rank=root, name=name), on_result)

    def _blocking(self, call: Callable[[], Any], on_result: Callable[[Array], None]) -> Handle:
        self._post.wait()
        on_result(call().numpy())
        self._post.stop_waiting()
        self._post.end_call()
        return Done()


class _TorchCall:
    """Handle over Horovod's handle number; releases the buffers when done."""

    def __init__(
        self, post: Post, hvd: Any, handle: int, on_result: Callable[[Array], None], ended: Callable[[], bool]
    ) -> None:
        self._post, self._hvd, self._handle, self._ended = post, hvd, handle, ended
        self._on_result: Callable[[Array], None] | None = on_result
        self._look_at = time.monotonic() + LOOK_S

    def test(self) -> bool:
        with translated_errors():
            if self._on_result is None:
                return True
            if self._hvd.poll(self._handle):
                self._finish(self._on_result)
            elif time.monotonic() > self._look_at:
                self._look_at += LOOK_S
                # It may have completed the call between the poll above and its end.
                if self._ended() and not self._hvd.poll(self._handle):
                    raise PeerLost(-1, "Horovod has been shut down while this call was submitted")
        return self._on_result is None

    def _finish(self, on_result: Callable[[Array], None]) -> None:
        self._on_result = None
        on_result(self._hvd.synchronize(self._handle).numpy())
        self._post.end_call()

    def wait(self) -> None:
        if self.test():
            return
        self._post.wait()
        while not self.test():
            time.sleep(POLL_S)
        self._post.stop_waiting()


def started_threads(call: Callable[[], None], name: str) -> list[str]:
    """Run `call`; ids of the threads that it started and that still run. They bear `name` (at most 15 characters), as
    threads take the name of the thread that starts them."""
    own = Path("/proc/thread-self/comm")
    before = own.read_text()
    own.write_text(name)
    try:
        call()
    finally:
        own.write_text(before.strip())
    return [task.name for task in TASKS.iterdir() if _name_of(task) == name]


def _name_of(task: Path) -> str:
    """A thread's name; empty where it has ended since."""
    try:
        return (task / "comm").read_text().strip()
    except OSError:
        return ""


@contextmanager
def translated_errors() -> Iterator[None]:
    """Raise Horovod's RuntimeErrors and TensorFlow's OpErrors as TransportErrors; both name the cause only in their
    text."""
    try:
        yield
    except TransportError:
        raise
    except Exception as error:
        text = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        if any(phrase in str(error) for phrase in PEER_IS_GONE):
            raise PeerLost(-1, text) from error
        raise TransportError(text) from error
