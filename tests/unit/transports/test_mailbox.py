"""The mailbox over TCP, between threads of this process: what arrives for whom, and what a rank that is gone leaves."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scaleproof.core.board import Board
from scaleproof.core.context import RankContext
from scaleproof.core.recorder import Recorder
from scaleproof.core.rendezvous import Rendezvous
from scaleproof.core.transport_errors import PeerLost, TransportError
from scaleproof.transports._mailbox_frames import HEADER
from scaleproof.transports._tcp_mailbox import TcpMailbox
from scaleproof.transports.mailbox import ANY, Message
from tests.short_form import ring_case

WITHIN_S = 20.0


def twice(source: int, name: str, value: np.ndarray) -> np.ndarray:
    return value * (2 if name == "twice" else 0)


@contextmanager
def mailboxes(folder: Path, ranks: int, serve: Callable[..., np.ndarray] = twice) -> Iterator[list[TcpMailbox]]:
    """Connected mailboxes of all ranks of a launch, each with a region "x" of four numbers."""
    (folder / "rendezvous").mkdir()
    board, opened = Board(folder / "board", ranks), dict[int, TcpMailbox]()

    def connect(rank: int) -> None:
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
            recorder=Recorder(folder / f"rank-{rank}.events", 16),
            board=board,
        )
        opened[rank] = TcpMailbox(context)
        opened[rank].open(serve, {"x": np.zeros(4)})

    together(*[lambda rank=rank: connect(rank) for rank in range(ranks)])
    try:
        yield [opened[rank] for rank in range(ranks)]
    finally:
        for mailbox in opened.values():
            mailbox.abandon()


def received(mailbox: TcpMailbox, source: int, tag: int) -> Message:
    message = mailbox.receive(source, tag)
    assert message is not None
    return message


def together(*calls: Callable[[], Any]) -> list[Any]:
    """The results of calls in threads of their own."""
    results: dict[int, Any] = {}
    threads = [
        threading.Thread(target=lambda place=place, call=call: results.__setitem__(place, call()), daemon=True)
        for place, call in enumerate(calls)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WITHIN_S)
        assert not thread.is_alive(), "a rank waits for ever"
    return [results.get(place) for place in range(len(calls))]


@pytest.mark.parametrize("dtype", ["float32", "int64", "uint8", "float16"])
@pytest.mark.parametrize("count", [0, 1, 1000, 3_000_000])
def test_a_message_arrives_as_it_was_sent(tmp_path: Path, dtype: str, count: int) -> None:
    value = (np.arange(count) % 100).astype(dtype)
    with mailboxes(tmp_path, 2) as (first, second):
        _, message = together(lambda: first.send(value, 1, 7), lambda: second.receive(0, 7))
    assert (message.source, message.tag, message.value.dtype) == (0, 7, np.dtype(dtype))
    assert np.array_equal(message.value, value)


def test_messages_of_a_rank_with_a_tag_keep_their_order_and_other_tags_wait(tmp_path: Path) -> None:
    with mailboxes(tmp_path, 3) as (first, second, third):
        for number in range(3):
            first.send(np.array([number]), 2, 1)
        first.send(np.array([9]), 2, 2)
        second.send(np.array([5]), 2, 3)
        assert received(third, ANY, 2).value.tolist() == [9]
        assert received(third, 1, 3).value.tolist() == [5]
        assert [received(third, ANY, 1).value.tolist() for _ in range(3)] == [[0], [1], [2]]


def test_a_message_that_comes_just_when_a_short_wait_has_ended_is_received(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with mailboxes(tmp_path, 2) as (first, _):
        waits = first._changed.wait

        def times_out(seconds: float | None = None) -> bool:
            if seconds is None:
                return waits()
            first._messages.add(Message(1, 5, np.array([8])))  # and its notice has been given to nobody
            return False

        monkeypatch.setattr(first._changed, "wait", times_out)
        (message,) = together(lambda: first.receive(1, 5))
        assert message.value.tolist() == [8]


def test_ranks_that_send_more_than_sockets_hold_to_each_other_do_not_wait_for_ever(tmp_path: Path) -> None:
    large = np.zeros(32 << 20, np.uint8)
    with mailboxes(tmp_path, 2) as (first, second):
        together(lambda: first.send(large, 1, 0), lambda: second.send(large, 0, 0))
        together(lambda: first.receive(1, 0), lambda: second.receive(0, 0))


def test_a_rank_sends_to_itself(tmp_path: Path) -> None:
    with mailboxes(tmp_path, 2) as (first, _):
        value = np.array([1])
        first.send(value, 0, 4)
        value[0] = 2
        assert received(first, ANY, 4).value.tolist() == [1]


def test_calls_are_answered_from_several_threads_and_until_all_ranks_have_closed(tmp_path: Path) -> None:
    with mailboxes(tmp_path, 2) as (first, second):
        closing = threading.Thread(target=second.close, daemon=True)
        closing.start()
        answers = together(*[lambda number=number: first.call(np.array([number]), 1, "twice") for number in range(4)])
        assert [answer.tolist() for answer in answers] == [[0], [2], [4], [6]]
        first.close()
        closing.join(WITHIN_S)
        assert not closing.is_alive()


def test_a_rank_that_is_gone_is_named_where_it_is_waited_for(tmp_path: Path) -> None:
    with mailboxes(tmp_path, 2) as (first, second):
        second.abandon()
        with pytest.raises(PeerLost, match="rank 1"):
            first.receive(1, 0)
        with pytest.raises(PeerLost, match="rank 1"):
            first.receive(ANY, 0)


def test_a_thread_that_waits_as_its_rank_leaves_ends(tmp_path: Path) -> None:
    with mailboxes(tmp_path, 2) as (first, _):
        waiting = threading.Thread(target=lambda: pytest.raises(TransportError, first.receive, 1, 0), daemon=True)
        waiting.start()
        first.abandon()
        waiting.join(WITHIN_S)
        assert not waiting.is_alive()


def test_a_message_that_nobody_can_send_any_more_is_not_waited_for(tmp_path: Path) -> None:
    with mailboxes(tmp_path, 2) as (first, second):
        closing = threading.Thread(target=second.close, daemon=True)
        closing.start()
        with pytest.raises(PeerLost, match="rank 1 has ended, and a message with tag 3 was expected"):
            first.receive(1, 3)
        with pytest.raises(PeerLost, match="all other ranks have ended"):
            first.receive(ANY, 3)
        first.close()
        closing.join(WITHIN_S)


def test_an_error_of_an_answer_is_raised_in_the_rank_that_failed_to_give_it(tmp_path: Path) -> None:
    def serve(source: int, name: str, value: np.ndarray) -> np.ndarray:
        raise ValueError(f"rank {source} calls {name!r}")

    with mailboxes(tmp_path, 2, serve) as (first, second):
        calling = threading.Thread(
            target=lambda: pytest.raises(PeerLost, first.call, np.array([1]), 1, "rain"), daemon=True
        )
        calling.start()
        with pytest.raises(TransportError, match="rank 0 calls 'rain'"):
            second.receive(0, 0)
        second.abandon()
        calling.join(WITHIN_S)
        assert not calling.is_alive()


def test_a_frame_that_is_no_array_is_refused(tmp_path: Path) -> None:
    with mailboxes(tmp_path, 2) as (first, second):
        first._sockets[1].sendall(HEADER.pack(0, 200, 0, 0, 0, 8) + bytes(8))
        with pytest.raises(TransportError, match="rank 0 sent a frame of 8 bytes with element type 200"):
            second.receive(0, 0)


def test_what_is_put_is_there_when_the_flag_after_it_has_been_raised(tmp_path: Path) -> None:
    with mailboxes(tmp_path, 2) as (first, second):
        first.put(np.array([5.0, 6.0]), 1, "x", 2)
        first.flag(1, "there", 2)
        assert second.await_flag("there", 2) == 2
        assert second.get(1, "x", 0, -1).tolist() == [0, 0, 5, 6]
        assert first.get(1, "x", 1, 2).tolist() == [0, 5], "the program of rank 1 takes no part"


def test_ranks_put_get_and_flag_at_themselves(tmp_path: Path) -> None:
    with mailboxes(tmp_path, 2) as (first, _):
        first.put(np.ones(4), 0, "x", 0)
        first.flag(0, "own", 1)
        assert first.await_flag("own", 1) == 1 and first.get(0, "x", 3, 1).tolist() == [1]


@pytest.mark.parametrize(
    ("value", "region", "start", "message"),
    [
        (np.ones(3), "x", 2, "rank 0 puts elements 2 to 5 of region 'x' of rank 1, which has 4"),
        (np.ones(3), "y", 0, r"rank 0 puts region 'y' of rank 1, which has no such region \(it has: x\)"),
        (np.ones(3, np.float32), "x", 0, "rank 0 puts float32 into region 'x' of rank 1, which has float64"),
    ],
)
def test_a_put_beside_a_region_is_named_in_the_rank_that_it_goes_to(
    tmp_path: Path, value: np.ndarray, region: str, start: int, message: str
) -> None:
    with mailboxes(tmp_path, 2) as (first, second):
        first.put(value, 1, region, start)
        with pytest.raises(TransportError, match=message):
            second.await_flag("never", 1)


def test_a_flag_that_nobody_can_raise_any_more_is_not_waited_for(tmp_path: Path) -> None:
    with mailboxes(tmp_path, 2) as (first, second):
        closing = threading.Thread(target=second.close, daemon=True)
        closing.start()
        with pytest.raises(PeerLost, match="all other ranks have ended, and flag 'ready' of 2 was expected"):
            first.await_flag("ready", 2)
        first.close()
        closing.join(WITHIN_S)
