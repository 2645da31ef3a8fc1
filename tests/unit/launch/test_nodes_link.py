"""What may travel between a launch's keeper and the agents of its nodes, and what a node may write."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from scaleproof.core.board import LINE, Board
from scaleproof.launch.nodes import coordinator_link as links
from scaleproof.launch.nodes.coordinator_link import (
    LONGEST_JSON,
    PIECE,
    Link,
    LinkLost,
    failed_agent_line,
    failed_agents,
)
from scaleproof.launch.nodes.file_transfer import Courier
from scaleproof.launch.nodes.received_files import Inbox, is_safe

WHOLE = {"first": True, "last": True}


@pytest.fixture
def pair() -> Iterator[tuple[Link, socket.socket]]:
    """A link, and the raw socket at its other end."""
    listener = socket.create_server(("127.0.0.1", 0))
    other = socket.create_connection(listener.getsockname())
    link = Link(listener.accept()[0])
    yield link, other
    link.close()
    other.close()
    listener.close()


def test_messages_and_their_bytes_arrive_as_they_were_sent(pair):
    link, other = pair
    sender = Link(other)
    sender.send("file", b"\0" * PIECE, name="x")
    told, body = link.receive()
    assert (told, len(body)) == ({"kind": "file", "name": "x"}, PIECE)


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (struct.pack("<II", LONGEST_JSON + 1, 0), "announced a message"),
        (struct.pack("<II", 2, PIECE + 1), "announced a message"),
        (struct.pack("<II", 2, 0) + b"[]", "no message"),
        (struct.pack("<II", 2, 0) + b"{]", "no JSON"),
        (b"\0\0", "closed"),
    ],
)
def test_what_is_no_message_ends_the_link(pair, sent, said):
    link, other = pair
    other.sendall(sent)
    other.shutdown(socket.SHUT_WR)
    with pytest.raises(LinkLost, match=said):
        link.receive()


def test_silence_ends_the_link(monkeypatch):
    monkeypatch.setattr(links, "LOST_S", 0.2)
    ends = socket.socketpair()
    with pytest.raises(OSError, match="not supported"):
        Link(ends[0])  # a local socket has no TCP options: only the real thing is a link
    listener = socket.create_server(("127.0.0.1", 0))
    other = socket.create_connection(listener.getsockname())
    with pytest.raises(LinkLost, match=r"nothing was heard of it for 0\.2 s"):
        Link(listener.accept()[0]).receive()
    other.close()


@pytest.mark.parametrize(
    "name", ["../x", "/etc/passwd", "rendezvous/../x", ".hidden", "a/b", "", "rendezvous/.draft", "x\n"]
)
def test_no_name_leads_out_of_the_folder(name):
    assert not is_safe(name)


@pytest.mark.parametrize(
    "name",
    [
        "rank-0.json",
        "exit-0.json",
        "launch.json",
        "board",
        "launcher.log",
        "nodes.json",
        "processes-0.json",
        "../x",
        "profile.json",
    ],
)
def test_a_node_may_write_nothing_of_others(tmp_path, name):
    with pytest.raises(ValueError, match="not its own"):
        Inbox(tmp_path, 1, (2, 3)).file({"name": name, **WHOLE}, b"")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["a b.npy", "plot: x=1, y=2.png", "größe.txt", "params.npy"])
def test_what_a_program_leaves_may_have_any_name(tmp_path, name):
    assert (
        Inbox(tmp_path, 1, (2, 3)).file({"name": name, **WHOLE}, b"x") == name
        and (tmp_path / name).read_bytes() == b"x"
    )


def test_a_file_in_pieces_is_seen_when_it_is_whole(tmp_path):
    inbox = Inbox(tmp_path, 1, (2, 3))
    assert (
        inbox.file({"name": "params.npy", "first": True, "last": False}, b"one") == ""
        and not (tmp_path / "params.npy").exists()
    )
    assert inbox.file({"name": "params.npy", "first": False, "last": True}, b"two") == "params.npy"
    assert (tmp_path / "params.npy").read_bytes() == b"onetwo"


def test_a_report_names_its_artifacts_where_they_lie_here(tmp_path):
    Inbox(tmp_path, 0, (0,)).file(
        {"name": "rank-0.json", **WHOLE}, json.dumps({"artifacts": {"p": "/dev/shm/there/p.npy"}}).encode()
    )
    assert json.loads((tmp_path / "rank-0.json").read_text())["artifacts"] == {"p": str(tmp_path / "p.npy")}


def test_a_line_of_another_nodes_rank_is_refused(tmp_path):
    Board(tmp_path / "board", 4).close()
    inbox = Inbox(tmp_path, 1, (2, 3))
    inbox.line({"rank": 2}, b"x" * LINE)
    for rank, line in ((0, b"y" * LINE), (2, b"y")):
        with pytest.raises(ValueError, match="sent a line"):
            inbox.line({"rank": rank}, line)
    assert (tmp_path / "board").read_bytes() == bytes(2 * LINE) + b"x" * LINE + bytes(LINE)


def test_the_word_of_a_ranks_end_comes_after_all_that_it_wrote(tmp_path, pair):
    link, other = pair
    folder = tmp_path / "launch"
    courier = Courier(folder, Link(other), [1], True, 0)
    for name, came in {"launch.json": b"{}", "board": bytes(2 * LINE)}.items():
        courier.take({"kind": "file", "name": name, **WHOLE}, came)
    for name in ("rank-1.events", "rank-1.json", "params.npy", "exit-1.json"):
        (folder / name).write_text(name)
    (folder / "rank-1.log").write_text("said")
    (folder / "rendezvous" / "key").write_text("1")
    courier.last()
    found = [_named(*link.receive()) for _ in range(8)]
    assert found[0] == "rendezvous/key" and found[-1] == "exit-1.json"
    assert set(found) == {
        "rendezvous/key",
        "line",
        "rank-1.log",
        "rank-1.events",
        "rank-1.json",
        "params.npy",
        "exit-1.json",
    }


def _named(told: dict[str, object], body: bytes) -> str:
    return str(told.get("name", told["kind"]))


def test_clocks_are_compared_by_the_shortest_way(pair, tmp_path):
    link, other = pair
    ahead = 5_000_000_000

    def answer() -> None:
        for turn in range(8):
            link.receive()
            time.sleep(0.02 if turn != 3 else 0.0)
            courier.take({"kind": "clock", "now": time.monotonic_ns() + ahead}, b"")

    courier = Courier(Path(tmp_path), Link(other), [0], False, 0)
    threading.Thread(target=answer, daemon=True).start()
    assert abs(courier.clock() - ahead) < 5_000_000


def test_agents_without_a_connection_are_told_apart_by_their_number():
    lines = [failed_agent_line(number, f"no way: {number}") for number in range(2)]
    assert failed_agents("ssh: hello\n" + lines[1] + lines[0] + "\n") == {0: "no way: 0", 1: "no way: 1"}
    assert failed_agents(lines[0][:-3]) == {}
