"""Several channels of a rank: the same training as with one, the same bytes, also on an emulated cluster, and a killed
rank is named."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch  # noqa: F401  imported before the ranks are forked, as their parent does

from scaleproof.claims.metrics_pairs import EQUIVALENT
from scaleproof.core.board import Board
from scaleproof.core.context import RankContext
from scaleproof.launch.supervisor import run_plan
from scaleproof.programs import train
from scaleproof.rank.unsupervised_ranks import run_ranks
from scaleproof.record.store import Store
from scaleproof.spec import registry
from scaleproof.spec.plan import PlannedLaunch
from scaleproof.stats.training_equivalence import relative_difference
from tests.integration._training import case_of, launch
from tests.integration.launches import assert_nothing_left, living
from tests.integration.netns import need_netns
from tests.waiting import wait_until

TRANSPORTS = registry.with_trait("transport", "channels")
STEPS, SEED = 20, 1000


def fields(**more: Any) -> dict[str, Any]:
    return {"ranks": 2, "collective": "ring", "strategy": "sync_overlap", "transport": "tcp", "steps": STEPS, **more}


@pytest.mark.parametrize("strategy", ["sync", "sync_overlap"])
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_two_channels_train_as_one_channel_and_as_one_worker_do(transport: str, strategy: str, tmp_path: Path) -> None:
    both = fields(transport=transport, strategy=strategy)
    one, two = (launch(tmp_path / str(count), case_of(**both, channels=count)) for count in (1, 2))
    alone = launch(tmp_path / "alone", case_of(steps=STEPS))
    assert two.failed_checks == []
    assert np.array_equal(two.parameters, one.parameters), "the same sums in the same order"
    assert relative_difference(two.parameters, alone.parameters) <= EQUIVALENT
    assert relative_difference(two.values("loss"), alone.values("loss")) <= EQUIVALENT
    assert two.count("communication") == two.count("queue") == one.count("communication") >= 3 * STEPS


def test_four_ranks_train_over_three_channels_as_over_one(tmp_path: Path) -> None:
    one, three = (launch(tmp_path / str(count), case_of(**fields(ranks=4), channels=count)) for count in (1, 3))
    assert np.array_equal(three.parameters, one.parameters)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_bytes_of_all_channels_are_counted_and_the_record_says_who_communicates(transport: str, tmp_path: Path) -> None:
    def body(context: RankContext) -> None:
        train.run(context)
        count = context.case.value("strategy.channels")
        np.save(tmp_path / f"{count}-{context.rank}.npy", context.facts["traffic"]["nbytes"])
        if count == 2:
            assert context.facts["communication"]["by"] == "2 threads"
            assert len(context.facts["channels"]) == 1

    for count in (1, 2):
        assert run_ranks(case_of(**fields(transport=transport), channels=count), body) == ["", ""]
    sent = [[int(np.load(tmp_path / f"{count}-{rank}.npy")) for rank in (0, 1)] for count in (1, 2)]
    assert sent[0] == sent[1]


def test_messages_of_all_channels_are_traced(tmp_path: Path) -> None:
    one, two = (launch(tmp_path / str(count), case_of(**fields(), channels=count, tracing="full")) for count in (1, 2))
    assert one.count("send") == two.count("send") > 3 * STEPS


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_rank_that_dies_is_a_lost_peer_on_every_channel(transport: str) -> None:
    def body(context: RankContext) -> None:
        if context.rank == 1:
            begin = train.Strategy.begin

            def dies(self: Any, step: int) -> None:
                if step == 3:
                    os.kill(os.getpid(), signal.SIGKILL)
                begin(self, step)

            train.Strategy.begin = dies  # type: ignore[method-assign]
        train.run(context)

    first, second = run_ranks(case_of(**fields(transport=transport), channels=2), body, 30)
    assert "PeerLost" in first and second == "ended by SIGKILL"


@pytest.mark.parametrize("fabric", ["host", "netns"])
def test_a_killed_rank_is_named_with_two_channels_too(fabric: str, tmp_path: Path) -> None:
    if fabric == "netns":
        need_netns()
    case = case_of(**fields(fabric=fabric, compute="none", steps=1_000_000), channels=2)
    with living(tmp_path, case) as launch_:
        board = Board(launch_.folder() / "board", 2)
        wait_until(lambda: all(board.read(rank).step > 9 for rank in (0, 1)), "both ranks have made steps")
        os.kill(board.pid(1), signal.SIGKILL)
        board.close()
    [record] = launch_.records
    assert record.failure is not None
    assert (record.failure.code, record.failure.rank) == ("rank_killed", 1), record.failure
    assert record.stall is not None and record.stall.first_silent == 1


def test_nodes_of_namespaces_train_over_two_channels_as_one_worker_does(tmp_path: Path) -> None:
    need_netns()
    emulated, alone = (
        case_of(**fields(fabric={"name": "netns", "link_mbit": 500}, arm="emulated"), channels=2),
        case_of(steps=STEPS, arm="alone"),
    )
    plan = [PlannedLaunch(case, 0, SEED, order) for order, case in enumerate((emulated, alone))]
    outcome = run_plan(plan, tmp_path, size="ci", deadline_s=60)
    assert_nothing_left(tmp_path, outcome.launches)
    records = {record.case.arm: record for record in (Store(tmp_path).load(each)[0] for each in outcome.launches)}
    assert all((record.status, record.failure) == ("ok", None) for record in records.values())
    trained = {arm: np.load(Store(tmp_path).folder(record) / "parameters.npy") for arm, record in records.items()}
    assert relative_difference(trained["emulated"], trained["alone"]) <= EQUIVALENT
    for part in records["emulated"].network:
        passed = part.after["eth0"]["tx_bytes"] - part.before["eth0"]["tx_bytes"]
        assert part.asked_bytes is not None and passed > 0.9 * part.asked_bytes > 0, "what both channels asked for"
