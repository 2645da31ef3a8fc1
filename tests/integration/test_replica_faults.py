"""Faults of a case on both clocks: training goes on without a rank that is killed, with its successor, through a pause,
and without calls that get lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from scaleproof.claims.metrics_faults import samples_lost, time_to_replace
from scaleproof.core.record_schema import Record
from tests.integration.netns import need_netns
from tests.integration.test_replicas import STEPS, WARMUP, launched, predicted, values

ALL = STEPS + WARMUP
STRATEGIES: list[dict[str, Any]] = [
    {"name": "gossip"},
    {"name": "gossip", "form": "push"},
    {"name": "gossip", "form": "push_pull", "draws": "all"},
    {"name": "triggered_gossip", "theta": 0.0},
    {"name": "push_sum"},
    {"name": "server"},
    {"name": "server", "bound": 1},
    {"name": "server", "update": "synchronous"},
    {"name": "elastic_averaging"},
    {"name": "downpour", "tau": 2},
    {"name": "probabilistic_barrier"},
]
IDS = [str(list(each.values())) for each in STRATEGIES]
SLOW: dict[str, Any] = {"step_delay": "fixed:0.1"}
LOSES: dict[str, Any] = {"faults": "lose:0.5,0.001"}


def counted(samples: pd.DataFrame, event: str) -> dict[int, int]:
    """Rows of an event by rank."""
    rows = samples[samples.event == event]
    return {int(rank): int(count) for rank, count in rows.groupby("rank").size().items()}


def began(samples: pd.DataFrame, rank: int) -> int:
    """When the timed region of a rank began, ns; others may begin some ms before and after it."""
    return int(samples[(samples.event == "start") & (samples["rank"] == rank)].start_ns.iloc[0])


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Record, pd.DataFrame]]:
    """A launch of every strategy on 4 ranks, of which the third is killed at step 3."""
    return launched(tmp_path_factory.mktemp("killed"), *STRATEGIES, ranks=4, faults="kill:2@3")


@pytest.mark.parametrize("number", range(len(STRATEGIES)), ids=IDS)
def test_training_goes_on_without_a_rank_that_is_killed(
    killed: list[tuple[Record, pd.DataFrame]], number: int, tmp_path: Path
) -> None:
    record, samples = killed[number]
    assert record.status == "ok", record.failure
    assert [rank.status for rank in record.ranks] == ["ok", "ok", "killed", "ok"]
    assert record.ranks[2].message == "killed by a fault of the case"
    assert not [warning for warning in record.warnings if warning.code == "leftovers"]
    _, virtual = predicted(tmp_path, STRATEGIES[number], ranks=4, faults="kill:2@3")
    for rows in (samples, virtual):
        workers = set(counted(rows, "step"))
        assert counted(rows, "loss") == {rank: 3 if rank == 2 else ALL for rank in workers}
        assert [(rank, step) for rank, step, _ in values(rows, "killed")] == [(2, 3)]
        assert values(rows, "test_loss")[-1][2] < 2.4
        lost = rows[(rows.event == "lost") & (rows["rank"] != 2)]
        assert set(lost.value) <= {2.0}
        assert samples_lost(record, rows) is not None


@pytest.mark.parametrize("transport", ["shm", "grpc"])
@pytest.mark.parametrize("strategy", [STRATEGIES[0], STRATEGIES[6]], ids=["gossip", "server"])
def test_a_rank_is_killed_over_other_transports(tmp_path: Path, transport: str, strategy: dict[str, Any]) -> None:
    ((record, samples),) = launched(tmp_path, strategy, ranks=4, faults="kill:2@3", transport=transport)
    assert record.status == "ok", record.failure
    assert counted(samples, "loss")[3] == ALL and counted(samples, "loss")[2] == 3


def test_the_last_rank_that_lives_trains_alone_and_evaluates(tmp_path: Path) -> None:
    faults = "kill:0@2+kill:1@3"
    ((record, samples),) = launched(tmp_path, {"name": "gossip"}, ranks=3, faults=faults)
    assert record.status == "ok", record.failure
    _, virtual = predicted(tmp_path, {"name": "gossip"}, ranks=3, faults=faults)
    for rows in (samples, virtual):
        assert counted(rows, "loss") == {0: 2, 1: 3, 2: ALL}
        assert set(counted(rows, "test_loss")) == {2}


@pytest.mark.parametrize("strategy", STRATEGIES, ids=IDS)
def test_a_successor_takes_the_place_of_a_rank_in_virtual_time(tmp_path: Path, strategy: dict[str, Any]) -> None:
    _, samples = predicted(tmp_path, strategy, ranks=4, faults="replace:2,0.35@3", **SLOW)
    assert [(rank, value) for rank, _, value in values(samples, "joined")] == [(2, 3.0)]
    done = counted(samples, "loss")
    assert {done[rank] for rank in done if rank != 2} == {ALL}
    assert done[2] <= ALL and (done[2] == ALL or strategy.get("update") == "synchronous")
    dead = samples[samples.event == "killed"].start_ns.iloc[0]
    joined = samples[samples.event == "joined"].start_ns.iloc[0]
    assert joined - dead == pytest.approx(0.35e9, abs=1e3)
    meanwhile = samples[(samples.event == "step") & (samples.end_ns > dead) & (samples.end_ns < joined)]
    assert min(counted(meanwhile, "step")[rank] for rank in done if rank != 2) >= 2, "nobody waits for it"
    again = predicted(tmp_path, strategy, ranks=4, faults="replace:2,0.35@3", **SLOW)[1]
    pd.testing.assert_frame_equal(samples, again)


def test_a_successor_is_a_fresh_process_that_takes_the_place_of_a_rank(tmp_path: Path) -> None:
    strategies = [{"name": "gossip"}, {"name": "push_sum"}, *STRATEGIES[6:9]]
    slow = {"step_delay": "fixed:0.5"}
    for record, samples in launched(tmp_path, *strategies, ranks=4, faults="replace:2,0.2@2", **slow):
        name = f"{record.case.arm} {record.failure}"
        assert record.status == "ok", name
        assert [rank.status for rank in record.ranks] == ["ok"] * 4, name
        done = counted(samples, "loss")
        assert {done[rank] for rank in done if rank != 2} == {ALL}, name
        assert [(rank, value) for rank, _, value in values(samples, "joined")] == [(2, 2.0)], name
        together = record.case.value("strategy.update") == "synchronous"
        assert done[2] == ALL or (together and 2 < done[2] < ALL), name
        assert (time_to_replace(record, samples) or 0.0) > 0.2, name


@pytest.mark.parametrize("strategy", [STRATEGIES[0], STRATEGIES[5]], ids=["gossip", "server"])
def test_a_rank_dies_at_a_moment_also_while_it_computes(tmp_path: Path, strategy: dict[str, Any]) -> None:
    ((record, real),) = launched(tmp_path, strategy, ranks=3, faults="kill:2@0.25s", **SLOW)
    assert record.status == "ok", record.failure
    _, virtual = predicted(tmp_path, strategy, ranks=3, faults="kill:2@0.25s", **SLOW)
    for rows, most_s in ((real, 2.0), (virtual, 0.2501)):
        ((_, _, _),) = values(rows, "killed")
        after_s = (rows[rows.event == "killed"].start_ns.iloc[0] - began(rows, 2)) / 1e9
        assert 0.2499 < after_s < most_s
        assert counted(rows, "loss")[2] < ALL


def test_who_waits_for_the_answer_of_a_rank_that_dies_goes_on(tmp_path: Path) -> None:
    faults = "pause:1,30@2+kill:1@0.5s"
    ((record, real),) = launched(tmp_path, {"name": "gossip"}, ranks=2, faults=faults, **SLOW)
    assert record.status == "ok", record.failure
    _, virtual = predicted(tmp_path, {"name": "gossip"}, ranks=2, faults=faults, **SLOW)
    for rows in (real, virtual):
        assert counted(rows, "loss") == {0: ALL, 1: 2}
        lost = rows[rows.event == "lost"]
        assert (lost.end_ns - lost.start_ns).iloc[0] > 0.1e9, "the call was under way"


def test_a_rank_that_has_ended_its_steps_is_spared(tmp_path: Path) -> None:
    ((record, real),) = launched(tmp_path, {"name": "gossip"}, ranks=2, faults="kill:1@60s")
    assert record.status == "ok" and not counted(real, "killed")
    assert not counted(predicted(tmp_path, {"name": "gossip"}, ranks=2, faults="kill:1@60s")[1], "killed")


@pytest.mark.parametrize("faults", ["pause:1,0.4@2", "pause:1,0.4@0.25s"])
def test_a_rank_that_pauses_begins_nothing_and_answers_nothing(tmp_path: Path, faults: str) -> None:
    ((record, real),) = launched(tmp_path, {"name": "gossip"}, ranks=2, faults=faults, **SLOW)
    assert record.status == "ok", record.failure
    _, virtual = predicted(tmp_path, {"name": "gossip"}, ranks=2, faults=faults, **SLOW)
    for rows, late_ns in ((real, 2e9), (virtual, 1e3)):
        pause = rows[rows.event == "pause"]
        assert list(pause["rank"]) == [1]
        start, end = int(pause.start_ns.iloc[0]), int(pause.end_ns.iloc[0])
        assert 0.399e9 < end - start < 0.4e9 + late_ns
        calls = rows[(rows.event == "call") & (rows["rank"] == 0)]
        answered = calls[(calls.end_ns > start) & (calls.end_ns < end - 1e6)]
        assert not len(answered) or (answered.end_ns - start).max() < 0.1e9, "under way when it began"
        assert (calls.end_ns - calls.start_ns).max() > 0.15e9
        assert counted(rows, "loss") == {0: ALL, 1: ALL}


def test_strategies_in_lockstep_bear_a_pause(tmp_path: Path) -> None:
    ((record, samples),) = launched(tmp_path, {"name": "local_sgd"}, ranks=2, faults="pause:1,0.3@2")
    assert record.status == "ok", record.failure
    steps = samples[(samples.event == "step") & (samples["rank"] == 0)]
    assert (steps.end_ns - steps.start_ns).max() > 0.25e9, "the other rank waited"


@pytest.mark.parametrize("form", ["pull", "push", "push_pull"])
def test_the_same_calls_get_lost_on_both_clocks(tmp_path: Path, form: str) -> None:
    strategy, faults = {"name": "gossip", "form": form}, "lose:0.4,0.02"
    ((record, real),) = launched(tmp_path, strategy, ranks=3, faults=faults)
    assert record.status == "ok", record.failure
    _, virtual = predicted(tmp_path, strategy, ranks=3, faults=faults)
    assert counted(real, "lost_call") == counted(virtual, "lost_call") != {}
    assert counted(real, "loss") == counted(virtual, "loss") == dict.fromkeys(range(3), ALL)
    for rows in (real, virtual):
        given_up = rows[rows.event == "lost"]
        assert len(given_up) == sum(counted(rows, "lost_call").values())
        assert (given_up.end_ns - given_up.start_ns).min() > 0.019e9


def test_lost_pushes_take_weight_with_them(tmp_path: Path) -> None:
    weights = []
    for more in (dict[str, Any](), LOSES):
        _, samples = predicted(tmp_path, {"name": "push_sum"}, ranks=4, **more)
        weights.append(sum(value for _, _, value in values(samples, "weight")))
    assert 0 < weights[1] < weights[0] / 2


def test_faults_without_a_moment_in_the_run_change_nothing(tmp_path: Path) -> None:
    plain = predicted(tmp_path, {"name": "server", "bound": 1}, ranks=3)[1]
    spared = predicted(tmp_path, {"name": "server", "bound": 1}, ranks=3, faults="kill:2@100s")[1]
    for event in ("loss", "test_loss", "staleness"):
        assert values(plain, event) == values(spared, event)


def test_a_rank_is_killed_and_replaced_on_an_emulated_cluster(tmp_path: Path) -> None:
    need_netns()
    fields = {"fabric": {"name": "netns", "link_mbit": 1000}, "step_delay": "fixed:0.3"}
    faults = "kill:3@2+replace:1,0.1@2"
    ((record, samples),) = launched(tmp_path, {"name": "gossip"}, ranks=4, faults=faults, **fields)
    assert record.status == "ok", record.failure
    assert counted(samples, "loss") == {0: ALL, 1: ALL, 2: ALL, 3: 2}


def test_ranks_that_replay_their_compute_have_the_same_faults(tmp_path: Path) -> None:
    replay = {"compute": {"name": "replay", "profile": "xeon_e5_2698v3_x2", "efficiency": 0.001}, "evaluate_every": 0}
    faults = "kill:3@4+replace:2,0.2@2+pause:1,0.3@3"
    ((record, samples),) = launched(tmp_path, {"name": "gossip"}, ranks=4, faults=faults, **replay, **SLOW)
    assert record.status == "ok", record.failure
    assert record.evidence == "emulated"
    assert counted(samples, "step") == counted(samples, "forward") == {0: ALL, 1: ALL, 2: ALL, 3: 4}
    assert counted(samples, "pause") == {1: 1} and counted(samples, "joined") == {2: 1}
