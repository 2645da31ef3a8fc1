"""torch.distributed with the Gloo backend, on the arrays' own memory."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field

from scaleproof.spec.plugins import MESSAGE_MAILBOX, Options, TransportPlugin
from scaleproof.transports._torch_distributed import TorchDistributed
from scaleproof.transports.contract import Array, Handle, ReduceOperation

if TYPE_CHECKING:
    from scaleproof.core.context import RankContext


class GlooOptions(Options):
    """Options of transport gloo."""

    devices: int = Field(
        1,
        ge=1,
        le=16,
        description="Gloo devices on the interface, each with sockets and a thread of its own; an all-reduce is split "
        "into as many calls at once.",
    )


class Gloo(TorchDistributed):
    """Gloo's own sockets listen on the fabric's interface only."""

    BACKEND = "gloo"
    # Gloo refuses 16-bit integers.
    DTYPES = frozenset({"float16", "float32", "float64", "int8", "uint8", "int32", "int64"})
    PATH = "socket"
    SILENT_CALLS = frozenset({"reduce_scatter"})

    def version(self) -> str:
        """Gloo is built into torch and has no version of its own."""
        return "Gloo"

    def prepare(self, context: RankContext) -> None:
        """Restrict its sockets to the case's interface; torch makes a device for each name."""
        self._devices = int(context.case.value("transport.devices", 1))
        os.environ["GLOO_SOCKET_IFNAME"] = ",".join([context.case.interface] * self._devices)

    def all_reduce(self, buffer: Array, operation: ReduceOperation = "sum") -> Handle:
        """See Collectives.all_reduce. torch gives consecutive calls to the devices in turn."""
        if self._devices == 1:
            return super().all_reduce(buffer, operation)
        parts = [part for part in np.array_split(buffer, self._devices) if part.size]
        return _Calls([super(Gloo, self).all_reduce(part, operation) for part in parts])

    def pollable(self, work: Any) -> Any:
        """See TorchDistributed.pollable."""
        return _PolledWork(work)


class _Calls:
    """Handle of calls that are under way at once."""

    def __init__(self, calls: list[Handle]) -> None:
        self._calls = calls

    def test(self) -> bool:
        """See Handle."""
        return all(call.test() for call in self._calls)

    def wait(self) -> None:
        """See Handle."""
        for call in self._calls:
            call.wait()


class _PolledWork:
    """A send, receive or reduce-scatter of torch's Gloo, which calls itself completed only after its `wait` has
    returned. From the first poll on, a thread waits for it; a work that nobody polls has no thread."""

    def __init__(self, work: Any) -> None:
        self._work = work
        self._error: RuntimeError | None = None
        self._thread: threading.Thread | None = None

    def is_completed(self) -> bool:
        """Whether `wait` would return, or raise, at once."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._wait, name="gloo-poll", daemon=True)
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
    options=GlooOptions,
    axis="GLOO",
    mailbox=MESSAGE_MAILBOX,
    stated_costs="gloo.costs.yaml",
    colour="purple",
    marker="D",
)
