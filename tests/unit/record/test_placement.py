"""Comparisons and verdicts name launches that ran on different nodes or at different distances between nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scaleproof.core.node_schema import Placement
from scaleproof.core.record_schema import Record
from scaleproof.record.placement import placement_differences
from tests.unit.claims.test_judge import SPEEDUP, judged
from tests.unit.compare.compare_records import FAST, NEW, OLD, code, compared, launches, warning_messages
from tests.unit.records import case, placed, record

LEAVES = {"n0": "top.left", "n1": "top.left", "n2": "top.right", "n3": "top.right", "n4": "other.far"}


def on(*nodes: str, ranks: int = 2, **fields: Any) -> Record:
    return record(case=case(ranks=ranks), placement=placed(*nodes, switches=LEAVES, ranks=ranks), **fields)


def codes(*sides: list[Record]) -> list[str]:
    return [code for code, _ in placement_differences([(name, side) for name, side in zip("AB", sides, strict=False)])]


def test_other_nodes_and_switches_are_reported_by_name() -> None:
    (nodes, reason), (switches, spread) = placement_differences(
        [("A", [on("n0", "n1"), on("n0", "n1")]), ("B", [on("n0", "n2")])]
    )
    assert (nodes, reason) == ("different_nodes", "launches ran on different nodes: A on c/n0, c/n1; B on c/n0, c/n2")
    assert switches == "different_switches"
    assert spread == (
        "their nodes are spread over switches differently: A on top.left (n0, n1); B on top.left (n0), top.right (n2)"
    )


def test_different_nodes_within_one_side_are_reported_with_their_launches() -> None:
    [(_, reason)] = placement_differences([("", [on("n0", "n1"), on("n2", "n3"), on("n2", "n3")])])
    assert reason == "launches ran on different nodes: c/n0, c/n1 (1 launch) or on c/n2, c/n3 (2 launches)"


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (on("n0", "n1"), on("n1", "n0"), []),
        (on("n0", "n1"), on("n2", "n3"), ["different_nodes"]),
        (on("n0", "n2"), on("n0", "n4"), ["different_nodes", "different_switches"]),
        (on("n0", "n1"), on("n0", "n1", "n2", "n3", ranks=4), []),
        (on("n0", "n1"), on("n0", "n2", "n3", ranks=3), ["different_nodes"]),
        (record(), record(machine="other"), []),
        (on("n0", "n1"), record(), []),
        (on("n0", "n1"), record(machine="other"), ["different_nodes"]),
        (on("n0", "n1"), record(machine="other", case=case(fabric="netns", transport="tcp")), []),
    ],
    ids=[
        "order",
        "as far apart",
        "over the top",
        "fewer of the same",
        "fewer, one of them another",
        "no allocation",
        "of the nodes' kind",
        "elsewhere",
        "made for it",
    ],
)
def test_differences_of_placement_and_their_codes(first: Record, second: Record, expected: list[str]) -> None:
    assert codes([first], [second]) == codes([second], [first]) == expected


def test_unknown_switches_are_no_difference() -> None:
    unknown = record(placement=placed("n0", "n1", switches={"n0": "top.left"}))
    assert codes([on("n0", "n1")], [unknown]) == []


def test_of_many_nodes_only_those_that_differ_are_listed() -> None:
    many = [f"n{number:02}" for number in range(40)]
    [(_, reason)] = placement_differences(
        [("A", [record(placement=placed(*many, "y"))]), ("B", [record(placement=placed(*many, "z"))])]
    )
    assert "A on c/y, c/n00" in reason and "and 35 more; B on c/z" in reason


def placed_commits(folder: Path, first: Placement, second: Placement) -> dict[str, str]:
    """Warnings of a comparison of two commits."""
    launches(folder, FAST, "a", code=code("0ld"), placement=first)
    launches(folder, FAST, "b", at=1, code=code("new"), placement=second)
    return warning_messages(compared(folder, OLD, NEW))


def test_a_comparison_warns_of_other_nodes(tmp_path: Path) -> None:
    messages = placed_commits(tmp_path, placed("n0", "n1"), placed("n2", "n1"))
    assert messages["different_nodes"].startswith("launches ran on different nodes: A on c/n0, c/n1; B on c/n1, c/n2; ")
    assert "one allocation" in messages["different_nodes"] and "different_switches" not in messages


def test_a_comparison_on_the_same_nodes_does_not(tmp_path: Path) -> None:
    assert (
        not {"different_nodes", "different_switches"}
        & placed_commits(tmp_path, placed("n0", "n1"), placed("n1", "n0")).keys()
    )


def test_a_verdict_from_launches_on_other_nodes_says_so(tmp_path: Path) -> None:
    claim = {**SPEEDUP, "against": {"ranks": 2, "transport": "tcp"}}

    def stood(moved: int) -> list[str]:
        def placement_of(launch: Any) -> dict[str, Any]:
            return {"placement": placed("n0", "n1" if launch.plan_index < moved else "n2")}

        (folder := tmp_path / str(moved)).mkdir()
        return [line for line in judged(folder, claim, lambda launch: 100.0, placement_of).warnings if "nodes" in line]

    assert stood(9) == []
    [line] = stood(4)
    assert line.startswith(
        "different_nodes: launches ran on different nodes: c/n0, c/n1 (8 launches) or on c/n0, c/n2 (4 launches); "
    )
