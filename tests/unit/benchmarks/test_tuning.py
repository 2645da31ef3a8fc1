"""Settings of peers: their budget, the choice of the best, and what the record holds of them. No launch is made."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks import interleaved
from benchmarks.arms import PLAIN, RANKS, RING_OVER_GRPC, SIZES, Arm, transport_arms
from benchmarks.interleaved import measure
from benchmarks.launches import NotMeasured
from benchmarks.table import markdown, summary
from benchmarks.tensorflow_peer import medians
from benchmarks.tuning import (
    BUDGET_LAUNCHES,
    BUDGET_SETTINGS,
    GRIDS,
    SHIPPED,
    TUNED_RANKS,
    Setting,
    Sizes,
    Trial,
    best,
    grid,
)
from scaleproof.spec import registry
from scaleproof.spec.suite import load_suite
from scaleproof.transports.tensorflow.session_server import CHUNK

ROOT = Path(__file__).resolve().parents[3]
PEER = Arm(RING_OVER_GRPC, 2, "all_reduce")
DEFAULT, SMALL, *OTHERS = grid(PEER)


def test_no_peer_has_more_settings_than_were_tried_for_our_grpc_and_each_gets_as_many_launches() -> None:
    ours = load_suite("xue2019", ROOT / "suites").experiment("tuning").size("small")
    assert (len(ours.cases), ours.launches) == (BUDGET_SETTINGS, BUDGET_LAUNCHES)
    for name, settings in GRIDS.items():
        assert 1 < len(settings) <= BUDGET_SETTINGS, name
        assert len({setting.name for setting in settings}) == len(settings), name


def test_tensorflows_ring_gets_the_piece_size_of_our_own_transport_and_its_default_is_tried_too() -> None:
    assert [setting.options["piece_kib"] << 10 for setting in (DEFAULT, SMALL)] == [CHUNK, 4096]


def test_a_call_of_tensorflows_ring_takes_as_long_as_its_slowest_rank() -> None:
    assert medians([{"8": [1.0, 5.0, 1.0]}, {"8": [2.0, 2.0, 2.0]}]) == {"8": 2.0}
    assert medians([{"8": [4.0, 5.0, 1.0]}, {"8": [1.0, 1.0, 9.0]}]) == {"8": 5.0}


def trial(name: str, *launches: tuple[float, float], why: Sequence[str] = ()) -> Trial:
    return Trial(Setting(name), [{8: short, 64: long} for short, long in launches], list(why))


def test_each_size_gets_the_setting_with_the_smallest_median_and_a_setting_that_failed_once_gets_none() -> None:
    trials = [
        trial("shipped", (1, 9), (1, 9), (50, 9)),
        trial("large", (2, 5), (2, 5), (2, 90)),
        trial("fragile", (0.1, 0.1), why=["ended"]),
    ]
    assert [(setting.name, sizes) for setting, sizes in best(trials, (8, 64))] == [("shipped", (8,)), ("large", (64,))]
    assert [(setting.name, sizes) for setting, sizes in best([trial("shipped")], (8, 64))] == [("shipped", (8, 64))]


def test_only_arms_that_targets_compare_are_tuned_and_ours_never() -> None:
    assert len(grid(Arm("mpi", 2, "all_reduce"))) == BUDGET_SETTINGS > len(grid(Arm("mpi", 2, "transfer"))) > 1
    assert grid(Arm("mpi", 4, "all_reduce")) == grid(Arm("shm", 2, "all_reduce")) == (SHIPPED,)


def test_the_docs_name_everything_that_is_not_tuned() -> None:
    """Transports around other people's libraries; all others are ours from the wire on."""
    ours = {"shm", "tcp", "grpc", "rdma", "grpc+shm", "grpc+rdma"}
    text = (ROOT / "docs" / "benchmarks.md").read_text()
    rows = [line for line in text.partition("Not tuned are:")[2].partition("\n\n`bench")[0].splitlines() if "|" in line]
    named = {name for row in rows for name in re.split("[|,:] *", row.replace(" |", "|"))}
    for arm in transport_arms():
        name = arm.name.removesuffix(PLAIN)
        if arm.ranks == TUNED_RANKS and len(grid(arm)) == 1 and name not in ours:
            assert name in named, f"{arm} is not tuned, and docs/benchmarks.md does not say so"
            if name in GRIDS:
                assert any(name in row and "transfers" in row for row in rows)


def test_our_windows_hold_both_buffers_of_the_largest_transfer() -> None:
    cases = transport_arms()
    for name in ("grpc+shm", f"grpc+shm{PLAIN}", "grpc+rdma", f"grpc+rdma{PLAIN}"):
        for ranks in RANKS:
            arm = Arm(name, ranks, "transfer")
            [setting] = grid(arm)
            transport = registry.load("transport", cases[arm].transport or "")
            assert transport.window_mib(cases[arm].changed(setting.options)) * 2**20 > 2 * SIZES[-1]


def test_a_setting_changes_the_environment_only_while_it_is_applied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UCX_A", "before")
    with Setting("s", {"UCX_A": "in", "UCX_B": "in"}).applied():
        assert (os.environ["UCX_A"], os.environ["UCX_B"]) == ("in", "in")
    assert os.environ["UCX_A"] == "before" and "UCX_B" not in os.environ


def fake(setting: Setting, sizes: Sequence[int], number: int) -> Sizes:
    """The default is best for the smallest size, 4 KiB pieces for all others; the last setting does not run."""
    if setting is OTHERS[-1]:
        raise NotMeasured("broken pipe")
    return {size: 2.0 if (setting is DEFAULT) == (size == SIZES[0]) else 3.0 + (setting is not SMALL) for size in sizes}


def test_the_record_has_every_setting_that_was_tried_with_its_launches_and_names_the_one_in_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(interleaved, "launches", lambda results, seed: {PEER: fake})
    monkeypatch.setattr(interleaved, "bounds", lambda sizes: {})
    measured = measure(number=3, seed=1, report=lambda text: None, tuning=2)
    result = summary(measured, {})
    tried = result["settings_tried"]
    assert {row["setting"] for row in tried} == {setting.name for setting in grid(PEER)}
    assert [row["setting"] for row in tried if row["used"]].count(DEFAULT.name) == 1
    assert all(len(row["seconds"]) == (0 if row["failed"] else 2) for row in tried)
    assert [row["failed"] for row in tried if row["setting"] == OTHERS[-1].name][0] == ["broken pipe"] * 2
    assert [row["launches"] for row in result["rates"]] == [3] * len(SIZES)
    used = {row["nbytes"]: row["setting"] for row in tried if row["used"]}
    assert {row["nbytes"]: row["setting"] for row in result["rates"]} == used
    text = markdown(result)
    assert f"| {RING_OVER_GRPC}, all_reduce | 2 | {OTHERS[-1].name} | failed |" in text and "**" in text


def test_a_setting_is_measured_with_the_sizes_that_it_was_tuned_with_and_only_its_own_are_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: dict[str, set[tuple[int, ...]]] = {}

    def with_sizes(setting: Setting, sizes: Sequence[int], number: int) -> Sizes:
        asked.setdefault(setting.name, set()).add(tuple(sizes))
        return fake(setting, sizes, number)

    monkeypatch.setattr(interleaved, "launches", lambda results, seed: {PEER: with_sizes})
    monkeypatch.setattr(interleaved, "bounds", lambda sizes: {})
    measured = measure(number=2, seed=1, report=lambda text: None, tuning=1)
    assert len(measured.used[PEER]) == 2, "both settings are in use"
    assert all(sizes == {SIZES} for sizes in asked.values()), asked
    assert measured.samples[PEER] == [dict.fromkeys(SIZES, 2.0)] * 2, "each size of the setting that is best there"


def test_without_tuning_all_peers_run_as_they_are_and_the_table_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interleaved, "launches", lambda results, seed: {PEER: fake})
    monkeypatch.setattr(interleaved, "bounds", lambda sizes: {})
    measured = measure(number=1, seed=1, report=lambda text: None, tuning=0)
    assert {row["setting"] for row in summary(measured, {})["rates"]} == {DEFAULT.name}
    assert "No setting of a peer was tried" in markdown(summary(measured, {}))
