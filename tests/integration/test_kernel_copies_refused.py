"""Where one rank may not copy from or to another's memory, all ranks use shared pieces, and the record says why; the
consent that Yama asks for ends with the transport."""

from __future__ import annotations

import ctypes
import os

import numpy as np
import pytest

from scaleproof.collectives.group import Group
from scaleproof.core.context import RankContext
from scaleproof.rank.unsupervised_ranks import run_ranks
from scaleproof.transports._buffers import address_of
from scaleproof.transports.shm import private_memory
from tests.integration.refusing_kernel import COPIES, refuse
from tests.integration.test_plain_buffers import MIB, connect, exchanged
from tests.short_form import ring_case


def test_one_rank_that_may_not_copy_makes_all_use_shared_pieces_and_the_record_says_why() -> None:
    def body(context: RankContext) -> None:
        if context.rank == 1:
            refuse(*COPIES)
        transport = connect(context)
        facts = context.facts["plain_buffers"]
        assert facts == {
            "way": "shared pieces",
            "refused": "rank 1: process_vm_readv of rank 0: Operation not permitted",
        }
        group = Group(transport, "ring")
        buffer = np.full(3 * MIB, context.rank + 1, np.int64)
        group.all_reduce(buffer).wait()
        assert (buffer == 6).all()
        assert np.array_equal(exchanged(transport, 3 * MIB), np.full(3 * MIB, (context.rank - 1) % 3, np.uint8))
        transport.close()

    assert run_ranks(ring_case("shm", 3), body) == [""] * 3


def test_reading_alone_is_not_enough() -> None:
    def body(context: RankContext) -> None:
        refuse(COPIES[1])
        assert "process_vm_writev of rank 0" in connect(context).arena.refused

    assert run_ranks(ring_case("shm", 2), body) == ["", ""]


def test_a_libc_without_the_calls_means_shared_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(private_memory.CALLS, "process_vm_readv", None)

    def body(context: RankContext) -> None:
        assert connect(context).arena.refused == "rank 0: libc has no process_vm_readv"

    assert run_ranks(ring_case("shm", 2), body) == ["", ""]


def test_a_process_that_does_not_hold_the_offered_word_is_not_the_peer() -> None:
    address, content = private_memory.Consent().offer
    itself = [private_memory.Peer(1, os.getpid())]
    word = np.array([content + 1], np.uint64)
    refused = private_memory.why_refused(itself, [(address_of(word), content)])
    assert refused == "process_vm_readv of rank 1 reached another process" and address != address_of(word)


def test_closing_ends_the_consent_to_be_traced() -> None:
    """After `close` no sibling may copy where Yama asks for consent; elsewhere the kernel knows no consent."""
    asked: list[tuple[int, ...]] = []

    class Recorded:
        @staticmethod
        def prctl(option: int, value: ctypes.c_ulong, *_: int) -> int:
            asked.append((option, value.value))
            return 0

    def body(context: RankContext) -> None:
        private_memory._libc = Recorded()  # type: ignore[assignment]
        connect(context).close()
        assert asked == [(0x59616D61, os.getppid()), (0x59616D61, 0)]

    assert run_ranks(ring_case("shm", 1), body) == [""]
