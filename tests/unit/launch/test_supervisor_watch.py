"""The rank that caused a failure, decided from what the supervisor sees."""

from __future__ import annotations

import json
import signal
import typing
from pathlib import Path

import pytest

from scaleproof.core.board import Board
from scaleproof.core.record_schema import FailureCode
from scaleproof.launch.finish.failure_advice import ADVICE
from scaleproof.launch.watch.failure_signs import Sign, Watch, ended_badly, root_cause
from scaleproof.rank.run_rank import RankFailure, failure_of


def killed(rank: int, at: int, number: int) -> Sign:
    return Sign("rank_killed", rank, at, "", number)


@pytest.mark.parametrize(
    ("signs", "cause"),
    [
        ([Sign("peer_lost", 0, 1, ""), killed(1, 2, signal.SIGKILL)], 1),
        ([Sign("rank_raised", 0, 1, ""), killed(1, 2, signal.SIGKILL)], 1),
        ([Sign("rank_raised", 1, 2, ""), killed(0, 1, signal.SIGABRT)], 1),
        ([Sign("transport_error", 0, 1, ""), Sign("rank_exited", 1, 2, "")], 1),
        ([Sign("rank_silent", 0, 1, ""), Sign("peer_lost", 1, 2, "")], 1),
        ([Sign("peer_lost", 0, 1, ""), Sign("rank_stopped", 1, 9, "")], 1),
        ([Sign("rank_raised", 0, 2, ""), Sign("rank_raised", 1, 1, "")], 1),
        ([Sign("check_failed", 1, 1, ""), Sign("rendezvous_timeout", 0, 0, "")], 1),
        ([killed(0, 2, signal.SIGSEGV), killed(1, 1, signal.SIGKILL)], 1),
        ([killed(0, 1, signal.SIGKILL), Sign("start_failed", 2, 1, ""), Sign("node_lost", 1, 2, "")], 1),
    ],
)
def test_the_root_cause_is_the_failure_that_no_other_explains(signs: list[Sign], cause: int) -> None:
    assert root_cause(signs).rank == cause
    assert root_cause(signs[::-1]).rank == cause


@pytest.mark.parametrize(
    ("end", "report", "code"),
    [
        ({"exit_code": 0, "signal": None}, {"status": "ok"}, None),
        ({"exit_code": 0, "signal": None}, None, "rank_exited"),
        ({"exit_code": 3, "signal": None}, {"status": "ok"}, "rank_exited"),
        ({"exit_code": 1, "signal": None}, {"status": "failed", "code": "diverged", "message": ""}, "diverged"),
        ({"exit_code": None, "signal": 9}, {"status": "ok"}, "rank_killed"),
    ],
)
def test_exit_and_report_of_a_rank_decide_together(end: dict, report: dict | None, code: str | None) -> None:
    sign = ended_badly(1, {"at_ns": 1, **end}, report)
    assert (sign and sign.code) == code


def test_a_silent_rank_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scaleproof.launch.watch.failure_signs.SILENT_S", -1.0)
    board = Board(tmp_path / "board", 2)
    board.write(1, step=7, operation="forward")
    board.enrol(1)
    [sign] = Watch(tmp_path, board).poll()
    assert (sign.code, sign.rank, sign.step, sign.operation) == ("rank_silent", 1, 7, "forward")


def test_a_half_written_exit_file_is_waited_for(tmp_path: Path) -> None:
    watch = Watch(tmp_path, Board(tmp_path / "board", 1))
    (tmp_path / "exit-0.json").write_text('{"pid"')
    assert watch.poll() == [] and not watch.all_ended()
    (tmp_path / "exit-0.json").unlink()
    (tmp_path / "exit-0.json").write_text(json.dumps({"pid": 1, "exit_code": 0, "signal": None, "at_ns": 1}))
    assert [sign.code for sign in watch.poll()] == ["rank_exited"]


def test_an_exception_brings_its_own_code() -> None:
    class Diverged(RuntimeError):
        code = "diverged"

    assert failure_of(Diverged("loss is nan")).code == "diverged"
    assert failure_of(OSError(28, "No space left on device")).code == "disk_full"
    assert failure_of(SystemExit(3)).code == "rank_raised"
    assert failure_of(ValueError("x")) == RankFailure("rank_raised", "ValueError: x")


def test_every_failure_has_advice_and_a_place_in_the_docs() -> None:
    codes = set(typing.get_args(FailureCode))
    assert set(ADVICE) == codes
    page = (Path(__file__).parents[3] / "docs" / "failures.md").read_text()
    assert [code for code in sorted(codes) if f"`{code}`" not in page] == []
