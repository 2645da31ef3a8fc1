"""The first silent rank, decided from the ranks' lines on the board; stacks and tracebacks from logs and from
py-spy."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from scaleproof.core.board import Board, Line
from scaleproof.launch.watch import stacks
from scaleproof.launch.watch.failure_signs import Sign, Watch
from scaleproof.launch.watch.flight_recorder import RankSnapshot, first_silent, sentence, stall_of
from scaleproof.launch.watch.rank_processes import Here
from scaleproof.record.process import process_state

FREE = Line(0, 0, 4, -1, "running", "forward", "all_reduce", 9, 9, 0, None, None)
PARKED = "import time\ndef parked():\n    print(flush=True)\n    time.sleep(60)\nparked()"


def ranks_waiting(*waits: int | None, behind: int = -1, ended: int = -1) -> list[RankSnapshot]:
    """Ranks that wait for these ranks (-1: inside a library; None: for nobody), all in call 9, but `behind` in call
    8."""
    lines = [replace(FREE, main=waits_for, calls=8 if rank == behind else 9) for rank, waits_for in enumerate(waits)]
    return [RankSnapshot(rank, line, 5.0, rank == ended) for rank, line in enumerate(lines)]


@pytest.mark.parametrize(
    ("ranks", "rank", "clause"),
    [
        (ranks_waiting(1, 2, None), 2, "rank 0 waits for rank 1, rank 1 waits for rank 2, rank 2 waits for nobody"),
        (ranks_waiting(2, 0, None, 1), 2, "rank 2 waits for nobody"),
        (ranks_waiting(1, 2, 0), 0, "deadlock: rank 0"),
        (ranks_waiting(None, 2, 1), 1, "deadlock: rank 1"),
        (ranks_waiting(-1, -1, None, behind=2), 2, "rank 0 waits for rank 2"),
        (ranks_waiting(-1, None, -1), 1, "rank 0 waits for rank 1"),
        (ranks_waiting(-1, -1, -1, behind=1), 1, "rank 1 waits inside a library"),
        (ranks_waiting(-1, -1), 0, "the library or the network does not move"),
        (ranks_waiting(1, None, ended=1), 1, "rank 1 had ended"),
        (ranks_waiting(None, None, behind=1), 1, "no rank waits for another; rank 1 is furthest behind"),
        (ranks_waiting(None, ended=0), -1, "all ranks had ended"),
    ],
)
def test_the_chain_of_waiting_ranks_leads_to_the_first_silent_one(
    ranks: list[RankSnapshot], rank: int, clause: str
) -> None:
    silence = first_silent(ranks)
    assert (silence.rank, clause in sentence(silence, ranks)) == (rank, True), sentence(silence, ranks)


def test_a_rank_that_failed_by_itself_is_the_first_silent_one() -> None:
    stall = stall_of(ranks_waiting(2, 2, 0), Sign("rank_killed", 2, 0, "killed by SIGKILL", signal.SIGKILL))
    assert (stall.first_silent, stall.why) == (2, "rank 2: killed by SIGKILL; ranks 0, 1 waited for it")
    assert [doing.waits_for for doing in stall.ranks] == [2, 2, 0]


def test_a_lost_peer_leads_to_that_peer() -> None:
    stall = stall_of(ranks_waiting(1, None, ended=0), Sign("peer_lost", 0, 0, "rank 1 closed the connection"))
    assert stall.first_silent == 1


def test_a_ranks_last_words_can_be_read_by_another_process(tmp_path: Path) -> None:
    board, reader = Board(tmp_path / "board", 2), Board(tmp_path / "board", 2)
    post = board.post(1)
    board.write(1, step=3, operation="backward")
    post.begin_call("broadcast")
    post.end_call()
    post.begin_call("all_reduce")
    post.round(2)
    post.wait(0)
    line = reader.read(1)
    assert (line.step, line.doing, line.waits_for) == (3, "backward; all_reduce call 2 round 2", 0)
    before = reader.mark(1)
    board.beat(1)
    assert reader.mark(1) == before
    post.wait(0)
    assert reader.mark(1) != before, "waiting on after some progress is a move"
    board.write(1, step=4, operation="forward")
    assert reader.read(1).waits_for is None
    assert reader.read(0) == Line(0, 0, 0, 0, "starting", "", "", 0, 0, 0, None, None)


def test_channels_wait_each_by_itself_and_calls_are_those_of_the_first(tmp_path: Path) -> None:
    board = Board(tmp_path / "board", 4)
    post = board.post(0)
    second = post.of_channel(1)

    def on_threads(*calls: Callable[[], None]) -> None:
        for call in calls:
            thread = threading.Thread(target=call)
            thread.start()
            thread.join()

    post.begin_call("all_reduce")
    second.begin_call("all_reduce")
    second.round(7)
    post.wait()
    on_threads(lambda: post.wait(3), lambda: second.wait(2), post.stop_waiting)
    line = board.read(0)
    assert (line.calls, line.calls_left, line.round, line.waits_for) == (1, 0, 0, 2)
    on_threads(second.stop_waiting)
    assert board.read(0).waits_for == -1
    second.end_call()
    assert board.read(0).calls_left == 0 and not board.pollers(0)


def test_a_helper_threads_wait_counts_once_the_main_thread_waits_too(tmp_path: Path) -> None:
    board = Board(tmp_path / "board", 1)
    post = board.post(0)
    helper = threading.Thread(target=post.wait, args=(5,))
    helper.start()
    helper.join()
    assert board.read(0).waits_for is None
    post.wait()
    assert board.read(0).waits_for == 5
    post.stop_waiting()
    assert board.read(0).waits_for is None


def test_no_rank_counts_as_idle_before_all_have_come(tmp_path: Path) -> None:
    board = Board(tmp_path / "board", 2)
    board.enrol(0)
    watch = Watch(tmp_path, board)
    watch.poll()
    assert watch.idle_s() == 0.0


def test_stacks_are_found_between_other_output() -> None:
    thread = [
        "Current thread 0x00007f2eca683b80 (most recent call first):",
        '  File "a.py", line 3 in f',
        "  <no Python frame>",
    ]
    log = "\n".join(
        ["loss 0.3", "Thread 7 of the pool", thread[0], thread[1], "loss 0.2", thread[0], *thread[1:], "done"]
    )
    assert stacks.parse_faulthandler(log) == [thread[0], thread[1], *thread]


def test_the_last_words_of_a_rank_are_its_traceback_or_its_fatal_signal(tmp_path: Path) -> None:
    log = tmp_path / "log"
    code = "import faulthandler, os\nfaulthandler.enable()\ndef leave():\n    {}\nleave()"
    for ending, word in (("raise KeyError(7)", "KeyError: 7"), ("os.kill(os.getpid(), 11)", "in leave")):
        with log.open("w") as file:
            subprocess.run([sys.executable, "-c", code.format(ending)], stderr=file, check=False)
        assert any(word in line for line in stacks.traceback_in(log)), log.read_text()
    log.write_text("all is well\n")
    assert stacks.traceback_in(log) == ()


def test_a_stopped_process_is_read_where_it_stopped_and_stays_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with subprocess.Popen([sys.executable, "-c", PARKED], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            process.send_signal(signal.SIGSTOP)
            os.waitpid(process.pid, os.WUNTRACED)  # returns once it has stopped
            stacks_by_rank = stacks.read_stacks(tmp_path, {0: process.pid}, Here())
            assert any("in parked" in line for line in stacks_by_rank[0].lines), stacks_by_rank
            assert "in parked" in (tmp_path / "rank-0.log").read_text()
            assert process_state(process.pid)[0] in ("T", "t")
            monkeypatch.setattr(stacks, "_py_spy", lambda: None)
            assert stacks.read_stacks(tmp_path, {0: process.pid}, Here()) == {
                0: stacks.Stack(missing="the process is stopped; py-spy is not installed")
            }
        finally:
            process.kill()


def test_an_answer_of_py_spy_lists_the_main_thread_first() -> None:
    frame = {"name": "f", "filename": "a.py", "line": 3}
    answer = json.dumps(
        [
            {"os_thread_id": 2, "thread_name": "helper", "frames": []},
            {"os_thread_id": 1, "thread_name": None, "frames": [frame]},
        ]
    )
    assert stacks.parse_spy(answer, main=1) == [
        "Thread 1 (most recent call first):",
        '  File "a.py", line 3 in f',
        "Thread 2 'helper' (most recent call first):",
    ]
