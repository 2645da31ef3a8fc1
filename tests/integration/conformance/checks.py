"""The checks of one process set: every operation, type and count against NumPy. Runs inside a rank, also under
mpirun."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import cast

import numpy as np

from scaleproof.collectives.group import Group
from scaleproof.core.context import RankContext
from scaleproof.core.transport_errors import TransportError
from scaleproof.spec.common_case import NATIVE
from scaleproof.transports.contract import Array, Collectives, Handle, OneSided, PointToPoint, ReduceOperation

FEW = (0, 1, 3, 17, 1021)
"""Elements for every type and operation: nothing, fewer than ranks, odd, primes."""
MANY = (16_384, 65_537, 786_433)
"""Elements of float32: 64 KiB, beyond a socket buffer, 3 MiB and odd."""
MESSAGES = (0, 1, 5, 0, 4096, 300_001, 3 << 20, 7)
"""Bytes of the messages that every rank sends every other, in this order."""


@dataclass(frozen=True, slots=True)
class Checked:
    """One result: `name` says transport, collective, operation, type, count, ranks and rank."""

    collective: str
    name: str
    passed: bool
    detail: str


class Checks:
    """Collects results of one rank for one collective algorithm."""

    def __init__(
        self, context: RankContext, group: Collectives, collective: str, keep: Callable[[Checked], None]
    ) -> None:
        self.context, self.group, self.collective = context, group, collective
        self.rank, self.world_size = group.rank, group.world_size
        self._keep = keep

    def collectives(self) -> None:
        """Every operation at every count and type, then what concerns several calls at once."""
        for dtype in sorted(self.group.capabilities.dtypes):
            for count in FEW + (MANY if dtype == "float32" else ()):
                self.all_reduce(dtype, count, "sum")
                self.all_reduce(dtype, count, "max")
                self.reduce_scatter(dtype, count)
                self.all_gather(dtype, count)
                for root in range(self.world_size):
                    self.broadcast(dtype, count, root)
        self.same_bits_everywhere()
        self.several_under_way()
        self.polled()
        self.barrier_waits()
        if self.collective == NATIVE:
            self.undeclared_type()
        if isinstance(self.group, Group):
            self.parts(self.group)

    def all_reduce(self, dtype: str, count: int, operation: ReduceOperation) -> None:
        buffer = self._allocate(dtype, count)
        buffer[:] = numbers(self.rank, is_unsigned(dtype), count)
        self.group.all_reduce(buffer, operation).wait()
        self.same(f"all_reduce {operation}", dtype, count, buffer, self._reduced(dtype, count, operation))

    def reduce_scatter(self, dtype: str, count: int) -> None:
        target, whole = self._allocate(dtype, count), count * self.world_size
        source = values(self.rank, dtype, whole)
        self.group.reduce_scatter(source, target).wait()
        expected = self._reduced(dtype, whole)[self.rank * count : (self.rank + 1) * count]
        self.same("reduce_scatter", dtype, count, target, expected)
        unchanged = numbers(self.rank, is_unsigned(dtype), whole)
        self.same("reduce_scatter keeps its source", dtype, count, source, unchanged)

    def all_gather(self, dtype: str, count: int) -> None:
        target = self._allocate(dtype, count * self.world_size)
        target.fill(0)
        self.group.all_gather(values(self.rank, dtype, count), target).wait()
        expected = [numbers(rank, is_unsigned(dtype), count) for rank in range(self.world_size)]
        self.same("all_gather", dtype, count, target, np.concatenate(expected))

    def broadcast(self, dtype: str, count: int, root: int) -> None:
        buffer = values(self.rank, dtype, count)
        self.group.broadcast(buffer, root).wait()
        self.same(f"broadcast from {root}", dtype, count, buffer, numbers(root, is_unsigned(dtype), count))

    def same_bits_everywhere(self) -> None:
        """Sums of arbitrary numbers agree with float64 closely and between ranks exactly, else replicas drift apart."""
        inputs = [
            np.random.default_rng(rank).standard_normal(40_003).astype(np.float32) for rank in range(self.world_size)
        ]
        buffer = inputs[self.rank].copy()
        self.group.all_reduce(buffer).wait()
        expected = np.add.reduce(inputs, dtype=np.float64)
        self.record(
            "all_reduce sum near float64",
            "float32",
            buffer.size,
            bool(np.allclose(buffer, expected, rtol=1e-5, atol=1e-5)),
            "beyond 1e-5",
        )
        digests = self._exchange(
            "bits", int(np.bitwise_xor.reduce(buffer.view(np.uint32) * np.arange(1, buffer.size + 1, dtype=np.uint32)))
        )
        self.record(
            "all_reduce sum same bits on all ranks",
            "float32",
            buffer.size,
            len(set(digests)) == 1,
            f"digests {digests}",
        )

    def several_under_way(self) -> None:
        buffers = [values(self.rank, "float32", count) for count in (5, 70_001, 1, 9973, *[333] * 10)]
        for handle in [self.group.all_reduce(buffer) for buffer in buffers]:
            handle.wait()
        for buffer in buffers:
            expected = self._reduced("float32", buffer.size)
            self.same("all_reduce, many under way", "float32", buffer.size, buffer, expected)

    def polled(self) -> None:
        """Each call's handle turns true without a wait."""
        count, dtype, everyone = 50_021, "float32", range(self.world_size)
        buffer, part, shared = values(self.rank, dtype, count), np.empty(count, dtype), values(0, dtype, count)
        source, gathered = values(self.rank, dtype, count), np.empty(count * self.world_size, dtype)
        whole = values(self.rank, dtype, count * self.world_size)
        shared[:] = shared if self.rank == 0 else 0
        mine = slice(self.rank * count, (self.rank + 1) * count)
        for name, call, result, expected in (
            ("all_reduce", lambda: self.group.all_reduce(buffer), buffer, self._reduced(dtype, count)),
            (
                "reduce_scatter",
                lambda: self.group.reduce_scatter(whole, part),
                part,
                self._reduced(dtype, whole.size)[mine],
            ),
            (
                "all_gather",
                lambda: self.group.all_gather(source, gathered),
                gathered,
                np.concatenate([numbers(rank, False, count) for rank in everyone]),
            ),
            ("broadcast", lambda: self.group.broadcast(shared), shared, numbers(0, False, count)),
        ):
            self.turns_true(f"{name}, polled", [call()])
            self.same(f"{name}, polled", dtype, count, result, expected)

    def turns_true(self, name: str, handles: Sequence[Handle]) -> None:
        """Polls handles until all are done."""
        pending, deadline = list(handles), time.monotonic() + 20
        while pending and time.monotonic() < deadline:
            pending = [handle for handle in pending if not handle.test()]
            time.sleep(0.0002)
        for handle in handles:
            handle.wait()
        self.record(name, "-", len(handles), not pending, f"{len(pending)} not seen completed by polls of 20 s")

    def barrier_waits(self) -> None:
        """The last rank comes late and says so; nobody may leave before. Nodes have clocks of their own, so no times
        are compared."""
        key = f"test.{self.collective}.came"
        if self.rank == self.world_size - 1:
            time.sleep(0.05)
            self.context.rendezvous.publish(key, True)
        self.group.barrier()
        try:
            came = self.context.rendezvous.get(key, 0.0)
        except RuntimeError:
            came = False
        self.record("barrier", "-", 0, came, "left before the last rank came")

    def parts(self, group: Group) -> None:
        """Ranks of either parity among themselves, last one first, and a call of all ranks at the same time;
        test_parts.py has all operations."""
        members = range(self.world_size)[self.rank % 2 :: 2][::-1]
        part = group.part(members)
        for count in (1, 70_001):
            mine, everyone = values(self.rank, "float32", count), values(self.rank, "float32", count)
            handles = [part.all_reduce(mine), group.all_reduce(everyone)]
            for handle in reversed(handles):
                handle.wait()
            self.same(
                "all_reduce in a part",
                "float32",
                count,
                mine,
                reduced(members, False, count),
            )
            self.same(
                "all_reduce beside a part",
                "float32",
                count,
                everyone,
                self._reduced("float32", count),
            )
        part.barrier()
        part.close()

    def undeclared_type(self) -> None:
        """What the library cannot reduce ends in an error on every rank, not in a wrong result."""
        try:
            self.group.all_reduce(np.zeros(4, np.complex64)).wait()
        except TransportError as error:
            self.record("all_reduce refuses", "complex64", 4, "complex64" in str(error), str(error))
        else:
            self.record("all_reduce refuses", "complex64", 4, False, "took a type that it does not declare")

    def _reduced(self, dtype: str, count: int, operation: ReduceOperation = "sum") -> Array:
        return reduced(range(self.world_size), is_unsigned(dtype), count, operation)

    def _allocate(self, dtype: str, count: int) -> Array:
        return self.group.allocate(count * np.dtype(dtype).itemsize).view(dtype)

    def _exchange(self, key: str, value: int) -> list[int]:
        return self.context.rendezvous.exchange(f"test.{self.collective}.{key}", self.rank, self.world_size, value)

    def same(self, operation: str, dtype: str, count: int, received: Array, expected: Array) -> None:
        wrong = np.flatnonzero(received != expected)
        detail = (
            f"{wrong.size} of {expected.size} differ, first at {wrong[0]}: {received[wrong[0]]} instead of "
            f"{expected[wrong[0]]}"
            if wrong.size
            else ""
        )
        self.record(operation, dtype, count, not wrong.size, detail)

    def record(self, operation: str, dtype: str, count: int, passed: bool, detail: str) -> None:
        where = (
            f"{self.context.case.transport} {self.collective}: {operation}, {dtype} x {count}, {self.world_size} "
            f"ranks, rank {self.rank}"
        )
        self._keep(Checked(self.collective, where, passed, "" if passed else detail))


class Messages:
    """Checks of sends and receives, and of what they count."""

    def __init__(self, checks: Checks, transport: PointToPoint) -> None:
        self._checks, self._transport = checks, transport
        self._peers = [peer for peer in range(transport.world_size) if peer != transport.rank]

    def run(self) -> None:
        """All ranks to all ranks, both directions at once."""
        transport, before = self._transport, (self._transport.traffic.nbytes, self._transport.traffic.messages)
        buffers = {peer: [transport.allocate(nbytes) for nbytes in MESSAGES] for peer in self._peers}
        receives = [transport.recv(buffer, peer) for peer in self._peers for buffer in buffers[peer]]
        going = [
            (message(transport.rank, peer, number), peer) for number in range(len(MESSAGES)) for peer in self._peers
        ]
        sends = [transport.send(buffer, peer) for buffer, peer in going]
        for handle in receives + sends:
            handle.wait()
        for peer in self._peers:
            for number, buffer in enumerate(buffers[peer]):
                self._checks.same(
                    f"message {number} from {peer}", "uint8", buffer.size, buffer, message(peer, transport.rank, number)
                )
        asked = (sum(MESSAGES) * len(self._peers), len(MESSAGES) * len(self._peers))
        counted = (transport.traffic.nbytes - before[0], transport.traffic.messages - before[1])
        self._checks.record(
            "traffic of messages",
            "uint8",
            sum(MESSAGES),
            counted == asked,
            f"counted {counted}, asked {asked} (bytes, messages)",
        )
        self._polled()
        self._reducing_polled()
        self._one_sided_polled()

    def _polled(self) -> None:
        """Sends and receives turn true without a wait, as a caller that computes meanwhile needs them to."""
        transport, number = self._transport, 5
        received = {peer: transport.allocate(MESSAGES[number]) for peer in self._peers}
        receives = [transport.recv(buffer, peer) for peer, buffer in received.items()]
        sends = [transport.send(message(transport.rank, peer, number), peer) for peer in self._peers]
        self._checks.turns_true("messages, polled", receives + sends)
        for peer, buffer in received.items():
            expected = message(peer, transport.rank, number)
            self._checks.same(f"polled message from {peer}", "uint8", buffer.size, buffer, expected)

    def _reducing_polled(self) -> None:
        """Receives that reduce as they receive."""
        reducing, number = getattr(self._transport, "recv_reduce", None), 5
        if reducing is None:
            return
        received = {peer: np.full(MESSAGES[number], 1, np.uint8) for peer in self._peers}
        handles = [reducing(buffer, peer, "max") for peer, buffer in received.items()]
        handles += [self._transport.send(message(self._transport.rank, peer, number), peer) for peer in self._peers]
        self._checks.turns_true("messages that are reduced, polled", handles)
        for peer, buffer in received.items():
            expected = np.maximum(message(peer, self._transport.rank, number), 1)
            self._checks.same(f"polled and reduced from {peer}", "uint8", buffer.size, buffer, expected)

    def _one_sided_polled(self) -> None:
        """Writes, reads and writes with a word, into the region of the rank to the right."""
        if not self._transport.capabilities.one_sided:
            return
        if not self._peers:  # a rank is no device of its own
            return
        device, rank, world_size = cast(OneSided, self._transport), self._transport.rank, len(self._peers) + 1
        nbytes = 4096
        own = device.register(2 * nbytes + 8)
        right, left = device.remote(own, (rank + 1) % world_size), (rank - 1) % world_size
        data, read = np.full(nbytes, rank + 1, np.uint8), np.zeros(nbytes, np.uint8)
        self._checks.turns_true("write, polled", [device.write(data, right)])
        self._checks.turns_true("write with a word, polled", [device.write_flagged(data, right, nbytes, 7)])
        device.wait_for(lambda: device.poll_word(own, 2 * nbytes) == 7, left)
        self._checks.turns_true("read, polled", [device.read(right, read)])
        assert own.local is not None
        self._checks.same("polled read", "uint8", nbytes, read, data)
        self._checks.same("polled writes", "uint8", 2 * nbytes, own.local[: 2 * nbytes], np.full(2 * nbytes, left + 1))
        device.barrier()
        device.deregister(own)


@cache
def numbers(rank: int, unsigned: bool, count: int) -> Array:
    """Small whole numbers of a rank, whose sum over five ranks is exact in every type. Read-only: all checks of a
    process share them."""
    lowest = 0 if unsigned else -20
    generated = np.random.default_rng((rank, count)).integers(lowest, 20, count, endpoint=True, dtype=np.int8)
    generated.flags.writeable = False
    return generated


@cache
def reduced(ranks: range, unsigned: bool, count: int, operation: ReduceOperation = "sum") -> Array:
    """The numbers of these ranks, reduced."""
    ufunc = np.add if operation == "sum" else np.maximum
    result = np.zeros(count, np.int16) if operation == "sum" else np.full(count, -128, np.int16)
    for rank in ranks:
        ufunc(result, numbers(rank, unsigned, count), out=result)
    result.flags.writeable = False
    return result


def is_unsigned(dtype: str) -> bool:
    """Whether a type has no negative numbers."""
    return np.dtype(dtype).kind == "u"


def values(rank: int, dtype: str, count: int) -> Array:
    """The numbers of a rank in a type, to be written to."""
    return numbers(rank, is_unsigned(dtype), count).astype(dtype)


def message(source: int, destination: int, number: int) -> Array:
    """What a rank sends another as its n-th message."""
    return np.random.default_rng((source, destination, number)).integers(0, 256, MESSAGES[number], dtype=np.uint8)
