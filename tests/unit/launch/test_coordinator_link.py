"""Messages between the coordinator of a launch and the agents of its nodes, and the files that a node may write."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from scaleproof.core.board import LINE, Board
from scaleproof.launch.finish.artifacts import collect_artifacts
from scaleproof.launch.nodes import coordinator_link as links
from scaleproof.launch.nodes import file_transfer
from scaleproof.launch.nodes.coordinator_link import (
    LONGEST_JSON,
    PIECE,
    Link,
    LinkLost,
    failed_agent_line,
    failed_agents,
)
from scaleproof.launch.nodes.file_transfer import FileTransfer
from scaleproof.launch.nodes.received_files import ReceivedFiles, artifact_name, is_key, is_plain
from scaleproof.launch.watch.failure_signs import Watch

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
    message, body = link.receive()
    assert (message, len(body)) == ({"kind": "file", "name": "x"}, PIECE)


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        (struct.pack("<II", LONGEST_JSON + 1, 0), "announced a message"),
        (struct.pack("<II", 2, PIECE + 1), "announced a message"),
        (struct.pack("<II", 2, 0) + b"[]", "no message"),
        (struct.pack("<II", 2, 0) + b"{]", "no JSON"),
        (b"\0\0", "closed"),
    ],
)
def test_malformed_messages_end_the_link(pair, sent, message):
    link, other = pair
    other.sendall(sent)
    other.shutdown(socket.SHUT_WR)
    with pytest.raises(LinkLost, match=message):
        link.receive()


def test_silence_ends_the_link(monkeypatch):
    monkeypatch.setattr(links, "LOST_S", 0.2)
    ends = socket.socketpair()
    with pytest.raises(OSError, match="not supported"):
        Link(ends[0])  # a Unix socket has no TCP options, so it cannot be a link
    listener = socket.create_server(("127.0.0.1", 0))
    other = socket.create_connection(listener.getsockname())
    with pytest.raises(LinkLost, match=r"nothing was heard of it for 0\.2 s"):
        Link(listener.accept()[0]).receive()
    other.close()


@pytest.mark.parametrize(
    "name", ["../x", "/etc/passwd", "rendezvous/../x", ".hidden", "a/b", "", "rendezvous/.draft", "x\n"]
)
def test_no_file_name_leads_out_of_the_folder(name):
    assert not is_plain(name) and not is_key(name)


@pytest.mark.parametrize(
    "name",
    [
        "rank-0.json",
        "rank-0.events",
        "exit-0.json",
        "rank-2.log",
        "rank-02.json",
        "rank-2.json/x",
        "run.json",
        "samples.parquet",
        "record",
        "parameters.npy",
        "artifacts-0/parameters.npy",
        "artifacts-1/../run.json",
        "artifacts-1/.hidden",
        "/tmp/rank-2.json",
        "rendezvous/../run.json",
        "launch.json",
        "board",
        "launcher.log",
        "nodes.json",
        "processes-0.json",
        "../x",
        "profile.json",
    ],
)
def test_a_node_may_not_write_files_of_other_nodes(tmp_path, name):
    with pytest.raises(ValueError, match="not its own"):
        ReceivedFiles(tmp_path, 1, (2, 3)).write({"name": name, **WHOLE}, b"")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["exit-2.json", "rank-3.events", "processes-1.json", "rendezvous/tcp.place.0"])
def test_a_node_may_write_its_own_ranks_files_and_keys(tmp_path, name):
    assert ReceivedFiles(tmp_path, 1, (2, 3)).write({"name": name, **WHOLE}, b"x") == name
    assert (tmp_path / name).read_bytes() == b"x"


@pytest.mark.parametrize("name", ["a b.npy", "plot: x=1, y=2.png", "größe.txt", "run.json"])
def test_an_artifact_may_have_any_name_in_the_folder_of_its_node(tmp_path, name):
    sent = artifact_name(1, name)
    assert ReceivedFiles(tmp_path, 1, (2, 3)).write({"name": sent, **WHOLE}, b"x") == sent
    assert (tmp_path / "artifacts-1" / name).read_bytes() == b"x" and not (tmp_path / name).exists()


def test_nothing_is_written_through_a_symbolic_link(tmp_path):
    outside, folder = tmp_path / "outside", tmp_path / "launch"
    folder.mkdir()
    outside.write_text("kept")
    files = ReceivedFiles(folder, 1, (2, 3))
    for link in ("rank-2.log", ".exit-2.json.1"):
        (folder / link).symlink_to(outside)
    with pytest.raises(ValueError, match="symbolic link"):
        files.add_to_log({"name": "rank-2.log"}, b"x")
    with pytest.raises(ValueError, match="symbolic link"):
        files.write({"name": "exit-2.json", **WHOLE}, b"{}")
    (folder / "rank-3.events").symlink_to(outside)
    files.write({"name": "rank-3.events", **WHOLE}, b"x")
    assert outside.read_text() == "kept" and not (folder / "rank-3.events").is_symlink()


def test_a_key_that_another_node_published_is_not_overwritten(tmp_path):
    first, second = ReceivedFiles(tmp_path, 0, (0, 1)), ReceivedFiles(tmp_path, 1, (2, 3))
    first.write({"name": "rendezvous/server", **WHOLE}, b"1")
    with pytest.raises(ValueError, match="another node has published"):
        second.write({"name": "rendezvous/server", **WHOLE}, b"2")
    assert (tmp_path / "rendezvous" / "server").read_bytes() == b"1"


def test_artifacts_of_nodes_reach_the_record_by_names_that_are_free(tmp_path):
    files = ReceivedFiles(tmp_path, 0, (0, 1))
    watch = Watch(tmp_path, Board(tmp_path / "board", 2))
    (tmp_path / "launch.json").write_text("own")
    for name in ("plot.png", "run.json", "launch.json"):
        files.write({"name": artifact_name(0, name), **WHOLE}, b"x")
    paths = {name: f"/dev/shm/there/{name}" for name in ("plot.png", "run.json", "launch.json", "absent.npy")}
    files.write({"name": "rank-0.json", **WHOLE}, json.dumps({"artifacts": paths}).encode())
    watch.reports[0] = json.loads((tmp_path / "rank-0.json").read_text())
    assert collect_artifacts(watch) == ["plot.png"]
    assert (tmp_path / "plot.png").read_bytes() == b"x" and (tmp_path / "launch.json").read_text() == "own"


def test_a_file_sent_in_pieces_appears_when_it_is_complete(tmp_path):
    files = ReceivedFiles(tmp_path, 1, (2, 3))
    assert (
        files.write({"name": "rank-2.events", "first": True, "last": False}, b"one") == ""
        and not (tmp_path / "rank-2.events").exists()
    )
    assert files.write({"name": "rank-2.events", "first": False, "last": True}, b"two") == "rank-2.events"
    assert (tmp_path / "rank-2.events").read_bytes() == b"onetwo"


def test_a_rank_report_names_the_local_paths_of_its_artifacts(tmp_path):
    ReceivedFiles(tmp_path, 0, (0,)).write(
        {"name": "rank-0.json", **WHOLE}, json.dumps({"artifacts": {"p": "/dev/shm/there/p.npy"}}).encode()
    )
    assert json.loads((tmp_path / "rank-0.json").read_text())["artifacts"] == {
        "p": str(tmp_path / "artifacts-0" / "p.npy")
    }


def test_a_line_of_another_nodes_rank_is_refused(tmp_path):
    Board(tmp_path / "board", 4).close()
    files = ReceivedFiles(tmp_path, 1, (2, 3))
    files.write_board_line({"rank": 2}, b"x" * LINE)
    for rank, line in ((0, b"y" * LINE), (2, b"y")):
        with pytest.raises(ValueError, match="sent a line"):
            files.write_board_line({"rank": rank}, line)
    assert (tmp_path / "board").read_bytes() == bytes(2 * LINE) + b"x" * LINE + bytes(LINE)


def test_the_exit_file_of_a_rank_is_sent_after_all_its_other_files(tmp_path, pair):
    link, other = pair
    folder = tmp_path / "launch"
    transfer = FileTransfer(folder, Link(other), [1], True, 0)
    for name, came in {"launch.json": b"{}", "board": bytes(2 * LINE)}.items():
        transfer.receive({"kind": "file", "name": name, **WHOLE}, came)
    for name in ("rank-1.events", "params.npy", "other.tmp", "exit-1.json"):
        (folder / name).write_text(name)
    (folder / "rank-1.json").write_text(json.dumps({"artifacts": {"p": str(folder / "params.npy")}}))
    (folder / "rank-1.log").write_text("said")
    (folder / "rendezvous" / "key").write_text("1")
    transfer.send_rest()
    names = [_named(*link.receive()) for _ in range(8)]
    assert names[0] == "rendezvous/key" and names[-1] == "exit-1.json"
    assert set(names) == {
        "rendezvous/key",
        "line",
        "rank-1.log",
        "rank-1.events",
        "rank-1.json",
        "artifacts-0/params.npy",
        "exit-1.json",
    }


def _named(header: dict[str, object], body: bytes) -> str:
    return str(header.get("name", header["kind"]))


class FakeClock:
    """Stands for the module `time`; only the test moves it."""

    def __init__(self) -> None:
        self.now_ns = 0

    def monotonic(self) -> float:
        return self.now_ns / 1e9

    def monotonic_ns(self) -> int:
        return self.now_ns


def test_the_exchange_with_the_shortest_round_trip_gives_the_clock_offset(pair, tmp_path, monkeypatch):
    link, other = pair
    offset_ns, clock = 5_000_000_000, FakeClock()
    monkeypatch.setattr(file_transfer, "time", clock)

    def answer() -> None:
        for number in range(file_transfer.ROUNDS):
            link.receive()
            clock.now_ns += 1_000_000
            now = clock.now_ns + offset_ns
            clock.now_ns += (
                1_000_000 if number == 3 else 20_000_000
            )  # all but one come back late: their middle is wrong
            transfer.receive({"kind": "clock", "now": now}, b"")

    transfer = FileTransfer(Path(tmp_path), Link(other), [0], False, 0)
    threading.Thread(target=answer, daemon=True).start()
    assert transfer.clock_offset_ns() == offset_ns


def test_agents_that_cannot_connect_are_identified_by_their_number():
    lines = [failed_agent_line(number, f"no way: {number}") for number in range(2)]
    assert failed_agents("ssh: hello\n" + lines[1] + lines[0] + "\n") == {0: "no way: 0", 1: "no way: 1"}
    assert failed_agents(lines[0][:-3]) == {}
