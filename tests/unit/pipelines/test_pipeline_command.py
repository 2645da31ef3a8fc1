"""`scaleproof pipeline`: a schedule on the terminal and as a picture, all schemes side by side."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scaleproof.cli import main

CHIMERA = """\
worker 0   0 |1 |...2 |[2   ]3 |[3   ]...[0   ]......[1   ]
worker 1   ...0 |2 |1 |3 |...[2   ][0   ][3   ][1   ]......
worker 2   ...2 |0 |3 |1 |...[0   ][2   ][1   ][3   ]......
worker 3   2 |3 |...0 |[0   ]1 |[1   ]...[2   ]......[3   ]
"""


def test_a_schedule_is_printed_with_its_gaps(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pipeline", "chimera", "--stages", "4", "--micro-batches", "4"]) == 0
    printed = capsys.readouterr().out
    assert CHIMERA in printed and "25.0%" in printed and "3 to 4" in printed


def test_schemes_are_compared_and_those_that_do_not_fit_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pipeline", "--stages", "6", "--micro-batches", "7"]) == 0
    lines = capsys.readouterr().out.splitlines()
    rows = {line.split()[0]: line.split() for line in lines if line.strip()}
    assert (rows["dapple"][1], rows["gems"][1]) == ("36", "96")
    assert rows["pipedream"][1:3] == ["21", "0.0%"], "without a flush an iteration leaves no gap"
    assert [line.removeprefix("left out: ") for line in lines if line.startswith("left out")] == [
        "chimera: micro-batches 7 does not fit; 6 or 12 would do",
        "chimera_doubling: micro-batches 7 does not fit; 4 or 8 would do",
        "chimera_halving: micro-batches 7 does not fit; 6 or 12 would do",
    ]


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_a_picture_is_drawn(suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / f"p.{suffix}"
    assert main(["pipeline", "gems", "--stages", "4", "--micro-batches", "6", "--out", str(path)]) == 0
    assert path.stat().st_size > 5000 and str(path) in capsys.readouterr().out


def test_a_trace_has_a_row_for_each_worker(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    assert main(["pipeline", "chimera", "--stages", "4", "--micro-batches", "4", "--out", str(path)]) == 0
    events = [event for event in json.loads(path.read_text())["traceEvents"] if event["ph"] == "X"]
    assert len(events) == 4 * 4 * 2 and {event["tid"] for event in events} == {0, 1, 2, 3}
    assert max(event["ts"] + event["dur"] for event in events) == 16_000.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["chimera", "--stages", "5", "--micro-batches", "4"], "4 or 6 would do"),
        (["gpipe", "--stages", "4", "--micro-batches", "4", "--backward", "0"], "--backward is above 0"),
        (["--stages", "4", "--micro-batches", "4", "--out", "a.png"], "a picture or trace of one SCHEME"),
        (["gpipe", "--stages", "4", "--micro-batches", "4", "--out", "a.gif"], ".png, .svg, .pdf, .json"),
        (["1f1b", "--stages", "4", "--micro-batches", "4"], "unknown scheme '1f1b'"),
    ],
)
def test_a_mistake_is_one_line(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pipeline", *arguments]) == 2
    printed = capsys.readouterr().err
    assert message in printed and printed.count("\n") == 1


def test_schedules_that_hold_too_much_are_left_out_and_say_what_would_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pipeline", "--stages", "4", "--micro-batches", "8", "--memory", "4"]) == 0
    printed = capsys.readouterr().out
    assert "left out: gpipe holds activations of 8 micro-batches; --memory 8 would do" in printed
    assert "\n dapple" in printed


def test_memory_that_no_schedule_fits_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pipeline", "dapple", "--stages", "4", "--micro-batches", "8", "--memory", "3"]) == 2
    error = capsys.readouterr().err
    assert "--memory 3: no schedule fits; dapple holds activations of 4 micro-batches; --memory 4 would do" in error
    assert main(["pipeline", "--stages", "4", "--micro-batches", "8", "--memory", "0.1"]) == 2
    assert "no schedule fits" in capsys.readouterr().err
