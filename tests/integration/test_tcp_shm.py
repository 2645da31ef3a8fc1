"""Our own transports between real processes: crossing messages, lost peers, strangers, nothing left behind, the device
interface."""

from __future__ import annotations

import dataclasses
import os
import signal
import socket
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scaleproof.collectives.group import Group, open_group
from scaleproof.core import handshake
from scaleproof.core.context import RankContext
from scaleproof.core.transport_errors import PeerLost, TransportError
from scaleproof.rank.unsupervised_ranks import run_ranks
from scaleproof.spec import registry
from scaleproof.spec.case import CollectiveCase
from scaleproof.transports.shm import shm_messages
from scaleproof.transports.shm.shm import SharedMemory
from scaleproof.transports.tcp import Tcp
from tests.short_form import ring_case

BOTH = ["tcp", "shm"]
ALGORITHMS = ["ring", "halving_doubling", "tree", "recursive_doubling", "chain", "double_binary_tree"]


def case(transport: str, ranks: int, algorithm: str = "ring") -> CollectiveCase:
    return ring_case(transport, ranks, collective=algorithm)


def connect(context: RankContext) -> Tcp | SharedMemory:
    assert context.case.transport is not None
    transport: Tcp | SharedMemory = registry.load("transport", context.case.transport).connect(context)
    return transport


@pytest.mark.parametrize("transport", BOTH)
@pytest.mark.parametrize("registered", [True, False])
def test_two_sends_of_8_mib_cross(transport: str, registered: bool) -> None:
    def body(context: RankContext) -> None:
        own = connect(context)
        size, peer = 8 << 20, 1 - context.rank
        sent = own.allocate(size) if registered else np.empty(size, np.uint8)
        received = np.empty(size, np.uint8)
        sent[:] = np.arange(size) % 251 + context.rank
        for _ in range(3):
            sending, receiving = own.send(sent, peer), own.recv(received, peer)
            sending.wait()
            receiving.wait()
            np.testing.assert_array_equal(received, (np.arange(size) % 251 + peer).astype(np.uint8))
        own.close()

    assert run_ranks(case(transport, 2), body) == ["", ""]


@pytest.mark.parametrize("reduces", [False, True])
def test_a_giant_message_in_shared_memory_is_taken_in_pieces(reduces: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between them the receiver tells that bytes move, so that nobody takes one call that lasts for a stall."""
    monkeypatch.setattr(shm_messages, "PIECE_BYTES", 1 << 20)

    def body(context: RankContext) -> None:
        own = connect(context)
        assert isinstance(own, SharedMemory)
        sent, received = own.allocate(10_000_000).view(np.int32), np.ones(2_500_000, np.int32)
        sent[:] = np.arange(sent.size)
        for _ in range(2):
            if context.rank == 0:
                own.send(sent, 1).wait()
            else:
                before, receiving = (
                    own._moved(),
                    own.recv_reduce(received, 0, "sum") if reduces else own.recv(received, 0),
                )
                receiving.wait()
                assert own._moved() - before == 10
        assert context.rank == 0 or (received == sent_in(reduces, sent.size)).all()
        own.barrier()
        own.close()

    def sent_in(summed: bool, size: int) -> np.ndarray:
        return 2 * np.arange(size) + 1 if summed else np.arange(size)

    assert run_ranks(case("shm", 2), body) == ["", ""]


@pytest.mark.parametrize("transport", BOTH)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_killed_peer_is_named_at_once_in_a_receive_and_in_a_collective(transport: str, algorithm: str) -> None:
    def body(context: RankContext) -> None:
        group = open_group(context)
        assert isinstance(group, Group)
        buffer = group.allocate(4 << 20).view(np.float32)
        buffer[:] = 1
        group.all_reduce(buffer).wait()
        if context.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        reduce, receive = lambda: group.all_reduce(buffer).wait(), lambda: group.transport.recv(buffer, 1).wait()
        for call in (reduce, reduce, receive):
            with pytest.raises(PeerLost) as lost:
                call()
            assert lost.value.peer == 1

    errors = run_ranks(case(transport, 2, algorithm), body, timeout_s=20)
    assert errors[0] == ""


def test_a_connection_with_the_wrong_token_is_refused_by_both_sides() -> None:
    connecting, accepting = socket.socketpair()
    refused: list[type[Exception]] = []

    def connector() -> None:
        try:
            handshake.prove(accepting, "another token", "launch", 1)
        except (OSError, handshake.Refused) as error:
            refused.append(type(error))

    thread = threading.Thread(target=connector)
    thread.start()
    with connecting, pytest.raises(handshake.Refused):
        handshake.answer(connecting, "the token", "launch")
    thread.join()
    accepting.close()
    assert refused


def test_an_acceptor_that_does_not_know_the_token_is_refused() -> None:
    connecting, accepting = socket.socketpair()

    def impostor() -> None:
        connecting.sendall(bytes(handshake.NONCE))
        handshake._read(connecting, handshake.RANK.size + handshake.NONCE + 32)
        connecting.sendall(bytes(32))

    thread = threading.Thread(target=impostor)
    thread.start()
    with accepting, pytest.raises(handshake.Refused):
        handshake.prove(accepting, "the token", "launch", 1)
    thread.join()
    connecting.close()


def test_a_stranger_does_not_disturb_the_ranks_and_a_rank_with_another_token_stays_out() -> None:
    def body(context: RankContext) -> None:
        if context.rank == 1:
            stranger = socket.create_connection(tuple(context.rendezvous.get("tcp.place.0")))
            stranger.sendall(bytes(500))
        own = connect(context)
        own.barrier()
        own.close()

    assert run_ranks(case("tcp", 2), body) == ["", ""]

    def impostor(context: RankContext) -> None:
        handshake.CONNECT_S = 1.0
        with pytest.raises(TransportError):
            connect(dataclasses.replace(context, token=f"token of rank {context.rank}"))

    assert run_ranks(case("tcp", 2), impostor) == ["", ""]


@pytest.mark.parametrize("transport", BOTH)
def test_a_message_of_another_size_is_an_error_and_not_wrong_data(transport: str) -> None:
    def body(context: RankContext) -> None:
        own = connect(context)
        if context.rank == 0:
            own.send(np.ones(1000, np.uint8), 1).wait()
        else:
            with pytest.raises(TransportError):
                own.recv(np.empty(999, np.uint8), 0).wait()
        own.close()

    assert run_ranks(case(transport, 2), body) == ["", ""]


def test_shared_memory_leaves_no_name_even_after_sigkill() -> None:
    there_before = {path.name for path in Path("/dev/shm").iterdir()}

    def names() -> set[str]:
        return {path.name for path in Path("/dev/shm").iterdir() if "scaleproof" in path.name} - there_before

    def body(context: RankContext) -> None:
        own = connect(context)
        own.allocate(1 << 20)[:] = 1
        assert not names()
        own.barrier()
        os.kill(os.getpid(), signal.SIGKILL)

    run_ranks(case("shm", 2), body, timeout_s=20)
    assert not names()


def test_a_flag_never_overtakes_the_bytes_written_before_it() -> None:
    def body(context: RankContext) -> None:
        own = connect(context)
        assert isinstance(own, SharedMemory)
        region = own.register(1 << 14)
        target, peer = own.remote(region, 1 - context.rank), 1 - context.rank
        copy = np.empty(1 << 14, np.uint8)
        for turn in range(1, 2001):
            if context.rank == 0:
                own.write(np.full(1 << 14, turn % 256, np.uint8), target)
            else:
                _poll(own, region, peer, turn)
                own.read(region, copy)
                assert (copy == turn % 256).all()
            own.set_flag(target, turn)
            if context.rank == 0:
                _poll(own, region, peer, turn)
        own.close()

    assert run_ranks(case("shm", 2), body) == ["", ""]


def _poll(own: SharedMemory, region, writer: int, value: int) -> None:
    while own.poll_flag(region, writer) < value:
        os.sched_yield()


def test_access_outside_of_a_region_is_refused() -> None:
    def body(context: RankContext) -> None:
        own = connect(context)
        assert isinstance(own, SharedMemory)
        region = own.register(100)
        with pytest.raises(TransportError, match="outside"):
            own.write(np.zeros(8, np.uint8), own.remote(region, 0), offset=96)
        own.close()

    assert run_ranks(case("shm", 1), body) == [""]


def test_shared_memory_is_free_again_when_the_last_view_is_gone() -> None:
    def body(context: RankContext) -> None:
        own = connect(context)
        assert isinstance(own, SharedMemory)
        quarter = own.arena.nbytes // 4
        view = own.allocate(quarter).view(np.float32)[10:20]
        places = {own.locate(own.allocate(quarter)) for _ in range(20)}
        assert len(places) == 1
        assert own.locate(view) not in places
        own.close()

    assert run_ranks(case("shm", 1), body) == [""]


@pytest.mark.parametrize("transport", BOTH)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_large_arrays_are_summed_wherever_they_lie(transport: str, algorithm: str, ranks: int) -> None:
    def body(context: RankContext) -> None:
        group = open_group(context)
        count = 700_001
        values = np.arange(count) % 1013
        expected = values * ranks + ranks * (ranks - 1) // 2
        for inside in (lambda _: True, lambda _: False, lambda rank: rank % 2 == 0):
            buffer = (group.allocate(8 * count) if inside(context.rank) else np.empty(8 * count, np.uint8)).view(
                np.int64
            )
            for _ in range(3):
                buffer[:] = values + context.rank
                group.all_reduce(buffer).wait()
                np.testing.assert_array_equal(buffer, expected)
        group.close()

    assert run_ranks(case(transport, ranks, algorithm), body) == [""] * ranks


class Plain:
    """A transport with nothing but what every point-to-point transport must have."""

    def __init__(self, inner: Tcp) -> None:
        self.rank, self.world_size, self.traffic, self.capabilities = (
            inner.rank,
            inner.world_size,
            inner.traffic,
            inner.capabilities,
        )
        self.send, self.recv, self.allocate, self.barrier, self.close = (
            inner.send,
            inner.recv,
            inner.allocate,
            inner.barrier,
            inner.close,
        )


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_send_and_receive_are_enough_for_every_collective(algorithm: str) -> None:
    def body(context: RankContext) -> None:
        plain: Any = Plain(Tcp.connect(context))
        group = Group(plain, algorithm)
        count = 900_001
        buffer = np.arange(count) % 1013 + context.rank
        group.all_reduce(buffer).wait()
        np.testing.assert_array_equal(buffer, np.arange(count) % 1013 * 3 + 3)
        group.close()

    assert run_ranks(case("tcp", 3, algorithm), body) == [""] * 3


@pytest.mark.parametrize("transport", BOTH)
def test_calls_run_in_order_whichever_handle_is_waited_for_first(transport: str) -> None:
    def body(context: RankContext) -> None:
        group = open_group(context)
        first, second = (group.allocate(1 << 20).view(np.float64) for _ in range(2))
        first[:], second[:] = context.rank, 10
        handles = [group.all_reduce(first), group.all_reduce(second), group.broadcast(first, root=1)]
        handles[2].wait()
        assert handles[0].test()
        assert handles[1].test()
        handles = [group.all_reduce(second), group.all_reduce(first, "max")]
        while not handles[1].test():
            time.sleep(0)
        handles[0].wait()
        assert (first == 3).all()
        assert (second == 90).all()
        group.barrier()
        group.close()

    assert run_ranks(case(transport, 3), body) == ["", "", ""]


@pytest.mark.parametrize("transport", BOTH)
@pytest.mark.parametrize("algorithm", ["ring", "halving_doubling"])
def test_traffic_is_what_the_schedule_says(transport: str, algorithm: str) -> None:
    def body(context: RankContext) -> None:
        group = open_group(context)
        buffer = group.allocate(4 << 20).view(np.float32)
        buffer[:] = 0
        before = group.traffic.nbytes, group.traffic.messages
        group.all_reduce(buffer).wait()
        messages = 6 if algorithm == "ring" else 4
        assert (group.traffic.nbytes - before[0], group.traffic.messages - before[1]) == (
            2 * buffer.nbytes * 3 // 4,
            messages,
        )
        group.close()

    assert run_ranks(case(transport, 4, algorithm), body) == [""] * 4


@pytest.mark.parametrize("transport", BOTH)
def test_a_type_that_the_transport_does_not_declare_is_refused(transport: str) -> None:
    def body(context: RankContext) -> None:
        group = open_group(context)
        for call in (
            lambda: group.all_reduce(np.zeros(4, np.complex64)),
            lambda: group.broadcast(np.zeros(4, np.complex64)),
            lambda: group.all_gather(np.zeros(4, np.complex64), np.zeros(8, np.complex64)),
            lambda: group.reduce_scatter(np.zeros(8, np.complex64), np.zeros(4, np.complex64)),
        ):
            with pytest.raises(TransportError, match="does not take complex64; it takes"):
                call()
        group.close()

    assert run_ranks(case(transport, 2), body) == ["", ""]
