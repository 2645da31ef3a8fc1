"""`scaleproof trees`: packings on the terminal and as a picture, allocations, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from scaleproof.cli import main

FIVE = "dgx1v_like[0,2,3,4,7]"


def test_trees_are_printed_beside_rings_and_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "trees.svg"
    assert main(["trees", FIVE, "--out", str(picture)]) == 0
    printed = capsys.readouterr().out
    assert "in links of 20 GB/s" in printed and "1.50" in printed, "three links' worth over two directions of a ring"
    assert "0,2,3,4,7" in printed and ">7" in printed, "devices keep their numbers"
    assert "all links" in picture.read_text() and "tree 1, carries 2" in picture.read_text()


def test_an_all_reduce_has_trees_without_direction(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trees", FIVE, "--collective", "all_reduce"]) == 0
    printed = capsys.readouterr().out
    assert "2.50" in printed and "2.00" in printed and "0-2" in printed and ">" not in printed.split("links")[-1]


def test_every_allocation_has_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trees", "dgx1p_like[0,1,2,3,4,5]", "--allocations"]) == 0
    printed = capsys.readouterr().out
    assert "0,1,2,3,4,5" in printed and "no ring" in printed


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["ethernet_10g"], "a star has as many nodes as a case"),
        (["dgx1p_like[0,5]"], "is not connected: no links lead to 0; leave these out"),
        ([FIVE, "--allocations", "--out", "a.png"], "--out a.png: a picture of one choice of nodes"),
        ([FIVE, "--out", "a.txt"], "ends in .png, .svg, .pdf"),
    ],
)
def test_what_has_no_trees_is_one_line(options: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trees", *options]) == 2
    error = capsys.readouterr().err
    assert message in error and len(error.strip().splitlines()) == 1
