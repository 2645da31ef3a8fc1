"""Buffers that no transport owns: right at every size whichever way they take, the way that the kernel allows is taken
and recorded, and a lost peer or a wrong size is an error and never wrong memory."""

from __future__ import annotations

import gc
import os
import signal
import time
import weakref
from typing import Any

import numpy as np
import pytest

from scaleproof.collectives.group import Group, open_group
from scaleproof.core.context import RankContext
from scaleproof.core.transport_errors import PeerLost, TransportError
from scaleproof.rank.unsupervised_ranks import run_ranks
from scaleproof.spec import registry
from scaleproof.transports._buffers import address_of
from scaleproof.transports.contract import Array, BufferUse
from scaleproof.transports.shm import private_memory
from scaleproof.transports.shm.shm import SharedMemory
from tests.integration.conformance.checks import Checked, Checks, Messages
from tests.integration.conformance.process_set import named_shared_memory
from tests.integration.refusing_kernel import COPIES, refuse
from tests.short_form import ring_case

MIB = 1 << 20
LOSS_S = 5.0
EVERY_SIZE, SOME_SIZES = 1, 4000
"""Smallest buffers that the kernel copies: all that are not empty; only some of the suite's counts."""


def connect(context: RankContext) -> SharedMemory:
    return SharedMemory.connect(context)


class PlainChecks(Checks):
    """The suite of all transports on buffers that NumPy allocates."""

    def _allocate(self, dtype: str, count: int) -> Array:
        return np.empty(count, dtype)


class PlainMessages(Messages):
    """Messages into buffers that NumPy allocates."""

    def run(self) -> None:
        self._transport.allocate = lambda nbytes: np.empty(nbytes, np.uint8)  # type: ignore[method-assign]
        super().run()


@pytest.mark.parametrize(
    ("way", "ranks"), [(EVERY_SIZE, 2), (EVERY_SIZE, 5), (SOME_SIZES, 3), ("refused", 2), ("refused", 3)]
)
def test_every_operation_on_plain_buffers_gives_what_numpy_does(
    way: int | str, ranks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if isinstance(way, int):
        monkeypatch.setattr(private_memory, "LEAST_NBYTES", dict.fromkeys(private_memory.LEAST_NBYTES, way))

    def body(context: RankContext) -> None:
        if way == "refused":
            refuse(*COPIES)
        failed: list[Checked] = []
        checked: list[str] = []

        def keep(check: Checked) -> None:
            checked.append(check.name)
            if not check.passed:
                failed.append(check)

        transport = connect(context)
        for name in registry.algorithms():
            if registry.get("collective", name).knows_nodes:
                continue
            group = Group(transport, name)
            PlainChecks(context, group, name, keep).collectives()
        PlainMessages(Checks(context, group, "messages", keep), transport).run()
        copied = context.facts["plain_buffers"].get("copied", {"calls": 0})["calls"]
        assert (copied > 0) == (way != "refused")
        assert len(checked) > 500
        assert not failed, failed[:5]
        transport.close()

    assert run_ranks(ring_case("shm", ranks), body, 100) == [""] * ranks


def exchanged(transport: SharedMemory, nbytes: int) -> Array:
    """What arrives when every rank sends its number to the next one."""
    received = np.empty(nbytes, np.uint8)
    receiving = transport.recv(received, (transport.rank - 1) % transport.world_size)
    transport.send(np.full(nbytes, transport.rank, np.uint8), (transport.rank + 1) % transport.world_size).wait()
    receiving.wait()
    return received


@pytest.mark.parametrize("large", [False, True], ids=["one element less", "the stated size"])
@pytest.mark.parametrize("use", private_memory.LEAST_NBYTES)
def test_the_kernel_copies_from_the_stated_size_on(use: BufferUse, large: bool) -> None:
    nbytes = private_memory.LEAST_NBYTES[use] - (0 if large else 4)

    def body(context: RankContext) -> None:
        transport = connect(context)
        if use == "message":
            assert (exchanged(transport, nbytes) == 1 - context.rank).all()
        else:
            buffer = np.ones(nbytes // 4, np.float32)
            Group(transport, "ring").all_reduce(buffer).wait()
            assert (buffer == 2).all()
        facts = context.facts["plain_buffers"]
        assert facts["least_nbytes"] == {"message": 4 * MIB, "collective": MIB}
        assert facts["copied"]["nbytes"] == (nbytes if large else 0)
        transport.barrier()
        transport.close()

    assert run_ranks(ring_case("shm", 2), body) == ["", ""]


@pytest.mark.parametrize("operation", ["all_reduce", "recv"])
def test_a_peer_that_dies_while_its_plain_memory_is_in_use_is_named_within_seconds(operation: str) -> None:
    """It dies at some moment of a long row of calls, most likely while the others copy from its memory."""

    def body(context: RankContext) -> None:
        transport = connect(context)
        group, buffer = Group(transport, "ring"), np.ones(16 * MIB, np.float32)
        group.barrier()
        if context.rank == 1:
            signal.setitimer(signal.ITIMER_REAL, 0.5)
            signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
        start = time.monotonic()
        with pytest.raises(PeerLost) as lost:
            while time.monotonic() < start + 3 * LOSS_S:
                if operation == "all_reduce":
                    group.all_reduce(buffer, "max").wait()
                else:
                    exchange(transport, buffer)
        assert lost.value.peer == 1
        assert time.monotonic() - start < LOSS_S
        transport.close()

    def exchange(transport: SharedMemory, buffer: Array) -> None:
        if transport.rank == 1:
            transport.send(buffer, 0).wait()
        else:
            transport.recv(buffer, 1).wait()

    assert run_ranks(ring_case("shm", 2), body, 30)[0] == ""


def test_a_copy_from_a_process_that_has_ended_names_its_rank() -> None:
    def body(context: RankContext) -> None:
        transport, word = connect(context), np.zeros(MIB, np.uint8)
        places = context.rendezvous.exchange("places", context.rank, 2, address_of(word))
        if context.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        assert transport.private_memory is not None
        target = np.empty(MIB, np.uint8)
        copy = transport.private_memory.reader(1, places[1], target)
        with pytest.raises(PeerLost, match="rank 1 has ended") as lost:
            deadline = time.monotonic() + LOSS_S
            while time.monotonic() < deadline:
                copy()
        assert lost.value.peer == 1

    assert run_ranks(ring_case("shm", 2), body)[0] == ""


def test_an_address_that_is_not_mapped_is_an_error() -> None:
    def body(context: RankContext) -> None:
        transport = connect(context)
        private = transport.private_memory
        assert private is not None
        target = np.empty(4096, np.uint8)
        with pytest.raises(TransportError, match="process_vm_readv of 4096 bytes and rank 1: Bad address"):
            private.reader(1, 4096, target)()
        transport.barrier()

    assert run_ranks(ring_case("shm", 2), body) == ["", ""]


def test_a_copy_that_the_kernel_cuts_short_is_completed(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = private_memory.CALLS["process_vm_readv"]

    def short(pid: int, local: Any, count: int, remote: Any, remotes: int, flags: int) -> int:
        parts = [private_memory.IoVec(part.base, min(part.nbytes, 1000)) for part in (local, remote)]
        return whole(pid, parts[0], count, parts[1], remotes, flags)

    monkeypatch.setitem(private_memory.CALLS, "process_vm_readv", short)
    nbytes = private_memory.LEAST_NBYTES["message"] + 17

    def body(context: RankContext) -> None:
        assert np.array_equal(exchanged(connect(context), nbytes), np.full(nbytes, 1 - context.rank, np.uint8))
        assert context.facts["plain_buffers"]["copied"] == {"calls": 1, "nbytes": nbytes}

    assert run_ranks(ring_case("shm", 2), body) == ["", ""]


def test_ranks_that_call_with_different_sizes_write_into_nobodys_memory() -> None:
    def body(context: RankContext) -> None:
        group = Group(connect(context), "ring")
        with pytest.raises(TransportError, match=r"rank \d calls with \d+ bytes, this rank with \d+"):
            group.all_reduce(np.ones(MIB + 1000 * context.rank, np.float32)).wait()

    assert run_ranks(ring_case("shm", 2), body) == ["", ""]


@pytest.mark.parametrize("algorithm", ["ring", "halving_doubling", "tree"])
def test_bytes_beside_a_plain_buffer_are_not_touched(algorithm: str) -> None:
    def body(context: RankContext) -> None:
        group = Group(connect(context), algorithm)
        around = np.full(2 * MIB + 3 + 2 * 4096, 7, np.int16)
        buffer = around[4096:-4096]
        for operation in (group.all_reduce, group.broadcast):
            buffer[:] = 1
            operation(buffer).wait()
        assert (around[:4096] == 7).all() and (around[-4096:] == 7).all()

    assert run_ranks(ring_case("shm", 3), body) == [""] * 3


def test_a_plain_buffer_is_freed_after_its_call() -> None:
    """Programs are kept for the next call on the same buffer; the buffer itself is not."""

    def body(context: RankContext) -> None:
        group, buffer = Group(connect(context), "ring"), np.ones(MIB, np.float32)
        group.all_reduce(buffer).wait()
        ended = weakref.ref(buffer)
        del buffer
        gc.collect()
        assert ended() is None
        group.barrier()

    assert run_ranks(ring_case("shm", 2), body) == ["", ""]


def test_ranks_with_plain_and_with_shared_buffers_reduce_together() -> None:
    def body(context: RankContext) -> None:
        group = Group(connect(context), "halving_doubling")
        buffer = np.empty(3 * MIB, np.uint8) if context.rank % 2 else group.allocate(3 * MIB)
        for turn in range(3):
            buffer[:] = context.rank + turn
            group.all_reduce(buffer).wait()
            assert (buffer == 6 + 4 * turn).all()
        group.barrier()

    assert run_ranks(ring_case("shm", 4), body) == [""] * 4


def test_a_part_copies_from_its_own_members() -> None:
    def body(context: RankContext) -> None:
        group = open_group(context)
        assert isinstance(group, Group)
        members = (3, 1) if context.rank % 2 else (0, 2)
        part, buffer = group.part(members), np.full(MIB, 10**context.rank, np.int32)
        part.all_reduce(buffer).wait()
        assert (buffer == sum(10**member for member in members)).all()
        group.barrier()

    assert run_ranks(ring_case("shm", 4), body) == [""] * 4


def test_no_file_in_shared_memory_stands_behind_a_plain_buffer() -> None:
    """So nothing can be left there, however the ranks end."""
    before = named_shared_memory()

    def body(context: RankContext) -> None:
        group, buffer = Group(connect(context), "ring"), np.ones(4 * MIB, np.float32)
        group.all_reduce(buffer).wait()
        assert named_shared_memory() == before
        group.barrier()

    assert run_ranks(ring_case("shm", 2), body) == ["", ""]
