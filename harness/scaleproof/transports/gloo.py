"""torch.distributed with the Gloo backend, on the arrays' own memory."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any

from scaleproof.spec.plugins import TransportPlugin
from scaleproof.transports._torch_distributed import TorchDistributed

if TYPE_CHECKING:
    from scaleproof.core.context import RankContext


class Gloo(TorchDistributed):
    """Gloo's own sockets listen on the fabric's interface only."""

    BACKEND = "gloo"
    # Gloo refuses 16-bit integers.
    DTYPES = frozenset({"float16", "float32", "float64", "int8", "uint8", "int32", "int64"})
    PATH = "socket"

    def version(self) -> str:
        """Gloo is built into torch and has no version of its own."""
        return "Gloo"

    def prepare(self, context: RankContext) -> None:
        """Restrict its sockets to the case's interface."""
        os.environ["GLOO_SOCKET_IFNAME"] = context.case.interface

    def pollable(self, message: Any) -> Any:
        """See TorchDistributed.pollable."""
        return _PolledMessage(message)


class _PolledMessage:
    """A send or receive of torch's Gloo, which calls itself completed only after its `wait` has returned. From the
    first poll on, a thread waits for it; a message that nobody polls has no thread."""

    def __init__(self, work: Any) -> None:
        self._work = work
        self._error: RuntimeError | None = None
        self._thread: threading.Thread | None = None

    def is_completed(self) -> bool:
        """Whether `wait` would return, or raise, at once."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._wait, name="gloo-message", daemon=True)
            self._thread.start()
        return not self._thread.is_alive()

    def wait(self) -> None:
        """Raises the back end's RuntimeError, such as a lost peer's."""
        if self._thread is None:
            self._work.wait()
            return
        self._thread.join()
        if self._error is not None:
            raise self._error

    def _wait(self) -> None:
        try:
            self._work.wait()
        except RuntimeError as error:
            self._error = error


PLUGIN = TransportPlugin(
    name="gloo",
    summary="torch.distributed with the Gloo backend",
    implementation=Gloo,
    requires=("torch",),
    needs_framework="torch",
    axis="GLOO",
    stated_costs="sockets",
    colour="purple",
    marker="D",
)
