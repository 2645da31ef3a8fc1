"""Slow nodes are those whose figures differ by more than equal nodes do. The figures are made by hand; stored figures
are valid for an hour."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from scaleproof.calibrate.sniffing.sniff import links_apart, one_per_machine
from scaleproof.core.atomic_write import write_form
from scaleproof.core.node_schema import Sniff, Sniffed, SniffedNode
from scaleproof.launch.preflight import sniff_test as sniffing
from scaleproof.launch.preflight.slow_nodes import SHARES, check, slow
from scaleproof.report.nodes import elsewhere, lines, nodes
from tests.unit.records import placed, record


def figure(value: float, spread: float = 0.01) -> Sniffed:
    return Sniffed(value=value, low=value * (1 - spread), high=value * (1 + spread), n=9)


def sniff_of(*names: str, taken_at: str = "2026-01-01T00:00:00+00:00", **figures: Any) -> Sniff:
    """Equal nodes except for the given figures: a dictionary by node for each kind."""
    usual = {"copied": 10e9, "multiplied": 100e9, "rate": 1.2e9, "trip": 30e-6}
    made = []
    for index, name in enumerate(names):
        node_figures: dict[str, Any] = {
            kind: figures.get(kind, {}).get(name, figure(value)) for kind, value in usual.items()
        }
        made.append(SniffedNode(name=name, boot=name, cores=2, next=names[(index + 1) % len(names)], **node_figures))
    return Sniff(cluster="c", job="17", taken_at=taken_at, nodes=made)


FOUR = ("a", "b", "c", "d")


def who(sniff: Sniff) -> list[tuple[str, str]]:
    return [(slowness.who, slowness.kind.name) for slowness in slow(sniff)]


@pytest.mark.parametrize("kind", ["copied", "multiplied"])
def test_a_node_far_below_the_middle_one_is_named(kind: str) -> None:
    usual = getattr(sniff_of("a").nodes[0], kind).value
    for share, named in (((1 - SHARES[kind]) * 0.97, [("c", kind)]), ((1 - SHARES[kind]) * 1.03, []), (2, [])):
        figures: dict[str, Any] = {kind: {"c": figure(usual * share)}}
        assert who(sniff_of(*FOUR, **figures)) == named


def test_a_node_whose_interval_reaches_the_others_is_not_named() -> None:
    assert who(sniff_of(*FOUR, copied={"c": Sniffed(value=5e9, low=4e9, high=9.8e9, n=9)})) == [("c", "copied")]
    assert who(sniff_of(*FOUR, copied={"c": Sniffed(value=5e9, low=4e9, high=10e9, n=9)})) == []
    wide = {name: figure(10e9, spread=0.6) for name in FOUR}
    assert who(sniff_of(*FOUR, copied={**wide, "c": figure(5e9, spread=0.1)})) == []


def test_a_node_is_named_when_its_links_are_slow_in_both_directions() -> None:
    """Of three nodes two of three links are slow then, and still only the node between them is named."""
    for names in (("a", "b", "c"), FOUR):
        assert who(
            sniff_of(*names, rate={"a": figure(0.1e9), "b": figure(0.1e9)}, trip={"a": figure(1e-3), "b": figure(1e-3)})
        ) == [
            ("b", "rate"),
            ("b", "trip"),
        ]


def test_one_slow_link_is_named_by_both_of_its_ends() -> None:
    slow_parts = slow(sniff_of(*FOUR, rate={"b": figure(0.1e9)}))
    assert [each.sentence for each in slow_parts] == ["b to c link 0.8 Gbit/s, 92% below the median of all, 9.6 Gbit/s"]


def test_a_link_to_a_slow_node_is_not_named_separately() -> None:
    assert who(sniff_of(*FOUR, copied={"c": figure(1e9)}, rate={"b": figure(0.1e9)})) == [("c", "copied")]


def test_two_nodes_cannot_tell_which_is_slow() -> None:
    two = sniff_of("a", "b", copied={"b": figure(1e9)})
    result = check(two)
    assert slow(two) == [] and (result.passed, result.advice) == (True, "")
    assert "copies 1 GB/s to 10 GB/s" in result.message and "3 nodes or more" in result.message


def test_the_check_names_the_node_and_says_what_to_do() -> None:
    result = check(sniff_of(*FOUR, multiplied={"d": figure(40e9)}))
    assert result.passed is True and result.message.startswith(
        "d multiplies 40 GFLOP/s, 60% below the median of all, 100 GFLOP/s; sniff test of 4 nodes: "
    )
    assert result.advice == "look at d (other work, heat, memory, cable), or leave it out (sbatch --exclude=d)"
    assert (
        check(sniff_of(*FOUR, rate={"b": figure(0.1e9)})).advice == "look at b to c (other work, heat, memory, cable)"
    )
    assert check(sniff_of(*FOUR)).advice == ""


def test_nodes_of_one_machine_take_turns_and_links_share_no_machine() -> None:
    assert one_per_machine(["x", "y", "z"]) == [{0, 1, 2}]
    assert one_per_machine(["x", "x", "y", "x"]) == [{0, 2}, {1}, {3}]
    assert links_apart(["x"] * 3) == [{0}, {1}, {2}]
    assert links_apart(["u", "v", "w", "x"]) == [{0, 2}, {1, 3}]
    assert links_apart(["u", "v", "w"]) == [{0}, {1}, {2}]


def test_kept_figures_serve_for_an_hour_and_for_the_same_nodes(tmp_path: Path) -> None:
    path = sniffing.sniff_file(tmp_path, "c", "17", ["b", "a"])
    assert path == sniffing.sniff_file(tmp_path, "c", "17", ["a", "b"])
    assert (
        len(
            {
                path,
                *(
                    sniffing.sniff_file(tmp_path, *other)
                    for other in (("c", "18", ["a", "b"]), ("d", "17", ["a", "b"]), ("c", "17", ["a", "x"]))
                ),
            }
        )
        == 4
    )
    assert sniffing.read_recent(path) is None
    for minutes, serves in ((59, True), (61, False), (-5, False)):
        write_form(path, sniff_of("a", "b", taken_at=(datetime.now(UTC) - timedelta(minutes=minutes)).isoformat()))
        assert (sniffing.read_recent(path) is not None) is serves
    path.write_text("{}")
    assert sniffing.read_recent(path) is None


def test_the_table_of_nodes_shows_places_figures_and_what_is_slow() -> None:
    sniff = sniff_of("n0", "n1", "n2", multiplied={"n1": figure(40e9)})
    launch = record(placement=placed("n0", "n1", switches={"n0": "top.left", "n1": "top.left"}), sniff=sniff)
    made = nodes(launch)
    assert (
        made is not None
        and made.origin
        == "2 of Slurm job 17 on cluster c, partition batch; started by srun over eth0, a shared file system"
    )
    assert [cell.value for cell in made.rows[1]] == [
        "n1",
        "top.left",
        "10.0.0.1",
        "1",
        "4",
        "m",
        "10",
        "40",
        "9.6",
        "30",
    ]
    assert [cell.slow for cell in made.rows[1]] == [False] * 7 + [True, False, False]
    assert made.rows[0][6].interval == "9.9 to 10.1"
    head, first, second = lines(launch)[1:]
    assert head.split()[:3] == ["node", "switch", "address"] and "SLOW" not in first and "40 SLOW" in second
    assert lines(record()) == []


def test_a_launch_without_a_sniff_test_shows_its_nodes_all_the_same() -> None:
    printed = lines(record(placement=placed("n0", "n1")))
    assert len(printed) == 4 and "copies" not in printed[1] and "switch" not in printed[1]


def test_launches_of_the_same_case_on_other_nodes_are_a_warning() -> None:
    first, second = record("aa", placement=placed("n0", "n1")), record("bb", placement=placed("n0", "n2"))
    [(code, message)] = elsewhere(first, [first, second])
    assert code == "different_nodes" and "this launch on c/n0, c/n1; others of its case on c/n0, c/n2" in message
    assert elsewhere(first, [first, record("cc", placement=placed("n1", "n0"))]) == []
