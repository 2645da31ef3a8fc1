"""The mailbox over TCP when a rank is gone that faults of the case kill: who waits for it, and who takes its place."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import numpy as np
import pytest

from scaleproof.core.board import Board
from scaleproof.core.context import RankContext
from scaleproof.core.killed_rank import KilledRank
from scaleproof.core.recorder import Recorder
from scaleproof.core.rendezvous import Rendezvous
from scaleproof.core.transport_errors import PeerLost
from scaleproof.transports._tcp_mailbox import TcpMailbox
from scaleproof.transports.mailbox import ANY
from tests.short_form import ring_case
from tests.unit.transports.test_mailbox import WITHIN_S, mailboxes, received, together, twice


def test_a_mortal_rank_takes_only_what_waits_for_it(tmp_path: Path) -> None:
    with mailboxes(tmp_path, 3) as (first, second, third):
        for each in (first, third):
            each.mortal = frozenset({1})
        second.send(np.array([4]), 0, 7)
        second.abandon()
        assert received(first, ANY, 7).value.tolist() == [4], "what it sent before is there"
        for source in (ANY, 1, 1):
            with pytest.raises(PeerLost, match="rank 1"):
                first.receive(source, 7)
        third.send(np.array([9]), 0, 7)
        assert received(first, ANY, 7).value.tolist() == [9], "from any it is told once"
        with pytest.raises(PeerLost, match="rank 1"):
            first.call(np.array([1]), 1, "twice")
        assert first.call(np.array([2]), 2, "twice").tolist() == [4]
        assert first.lost == {1}
        together(first.close, third.close)


def test_a_call_that_is_under_way_has_no_answer(tmp_path: Path) -> None:
    asked, over = threading.Event(), threading.Event()

    def serve(source: int, name: str, value: np.ndarray) -> np.ndarray:
        asked.set()
        over.wait(WITHIN_S)
        return value

    with mailboxes(tmp_path, 2, serve) as (first, second):
        first.mortal = frozenset({1})
        calling = threading.Thread(
            target=lambda: pytest.raises(PeerLost, first.call, np.array([1]), 1, "never"), daemon=True
        )
        calling.start()
        assert asked.wait(WITHIN_S)
        for connected in second._sockets.values():
            connected.shutdown(2)
        calling.join(WITHIN_S / 2)
        over.set()
        assert not calling.is_alive()


def test_a_rank_that_is_not_mortal_still_fails_all(tmp_path: Path) -> None:
    with mailboxes(tmp_path, 3) as (first, second, third):
        first.mortal = frozenset({2})
        second.abandon()
        with pytest.raises(PeerLost, match="rank 1"):
            first.receive(1, 0)
        with pytest.raises(PeerLost, match="rank 1"):
            first.receive(2, 0)


def test_a_successor_joins_those_who_are_left(tmp_path: Path) -> None:
    with mailboxes(tmp_path, 3) as (first, second, third):
        for each in (first, third):
            each.mortal, each.returning = frozenset({1}), frozenset({1})
        second.abandon()
        with pytest.raises(PeerLost, match="rank 1"):
            first.receive(ANY, 3)
        again = successor(tmp_path, 1, 3)
        try:
            until_none_is_lost(first, third)
            again.send(np.array([6]), 0, 3)
            assert received(first, ANY, 3).value.tolist() == [6]
            assert first.call(np.array([5]), 1, "twice").tolist() == [10]
            assert again.call(np.array([7]), 2, "twice").tolist() == [14]
            together(first.close, third.close, again.close)
        finally:
            again.abandon()


def test_a_successor_does_not_wait_for_a_rank_that_is_gone(tmp_path: Path) -> None:
    with mailboxes(tmp_path, 3) as (first, second, third):
        first.mortal, first.returning = frozenset({1, 2}), frozenset({1})
        KilledRank(0, 0).write(tmp_path, 2)
        second.abandon()
        third.abandon()
        again = successor(tmp_path, 1, 3)
        try:
            assert again.lost == {2}
            until_lost(first, {2})
            again.send(np.array([1]), 0, 1)
            assert received(first, 1, 1).value.tolist() == [1]
        finally:
            again.abandon()


def successor(folder: Path, rank: int, ranks: int) -> TcpMailbox:
    """The mailbox of a rank that takes the place of another one."""
    context = RankContext(
        case=ring_case(ranks=ranks),
        rank=rank,
        world_size=ranks,
        launch_id="test",
        token="secret",
        seed=1,
        folder=folder,
        address="127.0.0.1",
        rendezvous=Rendezvous(folder / "rendezvous"),
        recorder=Recorder(folder / f"successor-{rank}.events", 16),
        board=Board(folder / "board", ranks),
        predecessor=KilledRank(0, 0, 0.0),
    )
    mailbox = TcpMailbox(context)
    mailbox.mortal = frozenset({2})
    mailbox.open(twice, {})
    return mailbox


def until_none_is_lost(*boxes: TcpMailbox) -> None:
    for each in boxes:
        until_lost(each, set())


def until_lost(mailbox: TcpMailbox, ranks: set[int]) -> None:
    deadline = time.monotonic() + WITHIN_S
    while mailbox.lost != ranks:
        assert time.monotonic() < deadline, mailbox.lost
        time.sleep(0.005)
