"""Parts of a step of ranks at their own pace, on hand-made steps whose answers are known."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pytest

from scaleproof.claims.metrics import PER_LAUNCH
from scaleproof.claims.metrics_split import step_split
from scaleproof.claims.replica_split import PARTS
from scaleproof.claims.stragglers import rank_times
from scaleproof.rank_programs.effect_events import recorded
from scaleproof.rank_programs.effects import Call, Receive, Send
from scaleproof.transports.mailbox import Lost, Message
from tests.unit.claims.claims_samples import GOSSIP, MS, OF_SERVERS, record, samples, step_parts

Rows = list[tuple[Any, ...]]
LOCAL_SGD: dict[str, Any] = {**GOSSIP, "strategy": {"name": "local_sgd"}, "collective": "ring"}


def computed(rank: int, start: float = 0, length: float = 100) -> Rows:
    """A step: forward 20, backward 30, update the last 10."""
    return [
        (rank, "step", 1, start, start + length),
        (rank, "forward", 1, start, start + 20),
        (rank, "backward", 1, start + 20, start + 50),
        (rank, "update", 1, start + length - 10, start + length),
    ]


def parts(case: dict[str, Any], *rows: tuple[Any, ...]) -> pd.DataFrame:
    """Milliseconds by rank."""
    frame = step_parts(record(case), samples(*rows)).set_index("rank") / MS
    assert (frame[list(PARTS)].sum(axis=1) == frame["step"]).all()
    return frame


def test_a_rank_waits_for_the_peer_that_it_asked_and_nothing_is_imbalance() -> None:
    """Rank 1's step ends long after rank 0's: nobody waits for that."""
    split = parts(GOSSIP, *computed(0), (0, "call", 1, 55, 85, 400, 1.0), *computed(1, 30, 300))
    assert split.loc[0, ["wait_for_peer", "wait_for_server", "wait_at_barrier", "other"]].tolist() == [30, 0, 0, 10]
    assert split.loc[1, ["wait_for_peer", "other"]].tolist() == [0, 240]
    assert "imbalance" not in split and PER_LAUNCH["imbalance_s"](record(GOSSIP), samples(*computed(0))) is None


def test_a_worker_waits_for_the_server_whose_answer_it_receives() -> None:
    rows: Rows = [(1, "send", 1, 50, 55, 400), (1, "wait", 1, 55, 80, 400, 0.0), (1, "wait", 1, 80, 85, 0, 2.0)]
    split = parts(OF_SERVERS, *computed(1), *rows, *computed(2))
    assert split.loc[1, ["exposed_transfer", "wait_for_server", "wait_for_peer", "other"]].tolist() == [5, 25, 5, 5]
    assert sorted(split.index) == [1, 2], "the server has no steps"
    assert split.loc[1, "communication"] == 35


def test_what_a_rank_does_at_a_barrier_is_waiting_at_it() -> None:
    """It asks a peer, sleeps and asks again, from 55 to 85."""
    asked: Rows = [
        (1, "control", 1, 55, 60, 4, 2.0),
        (1, "control", 1, 80, 85, 4, 2.0),
        (1, "barrier_s", 1, 85, 85, 0, 0.03),
    ]
    split = parts(OF_SERVERS, *computed(1), *asked)
    assert split.loc[1, ["wait_at_barrier", "wait_for_peer", "other"]].tolist() == [30, 0, 10]


def test_delays_of_the_case_are_told_from_waits() -> None:
    split = parts(OF_SERVERS, *computed(1), (1, "delay", 1, 50, 70), (1, "wait", 1, 60, 85, 0, 0.0))
    assert split.loc[1, ["delayed", "wait_for_server", "other"]].tolist() == [20, 15, 5]


def test_only_what_computing_does_not_hide_is_waiting() -> None:
    split = parts(GOSSIP, *computed(0), (0, "call", 1, 30, 70, 400, 1.0))
    assert split.loc[0, ["backward", "wait_for_peer"]].tolist() == [30, 20]


def test_ranks_in_lockstep_wait_at_their_collective_for_the_last_that_begins_it() -> None:
    rows: Rows = [(0, "all_reduce", 1, 50, 90, 400), (1, "all_reduce", 1, 75, 90, 400)]
    split = parts(LOCAL_SGD, *computed(0), *computed(1), *rows)
    assert split.loc[0, ["wait_at_barrier", "exposed_transfer"]].tolist() == [25, 15]
    assert split.loc[1, ["wait_at_barrier", "exposed_transfer", "other"]].tolist() == [0, 15, 25]


def test_exposed_communication_is_all_exchanges_and_waits() -> None:
    rows = [*computed(1), (1, "send", 1, 50, 55, 400), (1, "wait", 1, 55, 85, 400, 0.0)]
    made, frame = record(OF_SERVERS), samples(*rows)
    assert PER_LAUNCH["exposed_communication_s"](made, frame) == pytest.approx(0.035)
    split = step_split(made, frame)
    assert split is not None and sum(split.values()) == pytest.approx(0.1)
    times = rank_times(made, frame)
    assert times is not None and times.loc[1, "own"] == pytest.approx(0.065)


def test_effects_say_whom_a_rank_waits_for() -> None:
    array = samples((0, "step", 0, 0, 1))["value"].to_numpy()
    assert recorded("call", Call(3, array), array).value == 3.0
    assert math.isnan(recorded("control", Call(3, array, control=True), array).value), (
        "control is counted apart, and no wait for a model"
    )
    assert math.isnan(recorded("send", Send(3, array), None).value)
    assert recorded("wait", Receive(), Message(2, 0, array)) == ("wait", array.nbytes, 2.0)
    assert recorded("call", Call(3, array), Lost(3)) == ("lost", 0, 3.0)
    over = recorded("delay", Receive(within=1.0), None)
    assert over.nbytes == 0 and math.isnan(over.value)
