"""Which campaign a call of `run` makes, and under which ids: its own but for a block that an earlier call began."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from scaleproof.core.campaign import CampaignIds
from scaleproof.launch import campaign_ids
from scaleproof.launch import next_campaign as chosen
from scaleproof.launch.campaign_ids import CallIds
from scaleproof.record.digest import machine_id
from scaleproof.spec.plan import PlannedLaunch, plan
from scaleproof.spec.suite import load_suite

SUITE = """\
suite: x
title: t
experiments:
  e:
    summary: s
    base: {program: transfer, ranks: 2, sizes: [1 KiB], iterations: 2}
    arms: {shm: {transport: shm}, tcp: {transport: tcp}}
    sizes:
      small: {launches: 2, campaigns: 3, matrix: [{arms: [shm, tcp]}]}
"""


class Records:
    """A store with records of some launches."""

    def __init__(self) -> None:
        self.all: list[Any] = []

    def records(self, case_id: str) -> list[Any]:
        return [record for record in self.all if record.case_id == case_id]

    def add(
        self, launches: list[PlannedLaunch], status: str = "ok", campaign_id: str = "a", replaces: str = ""
    ) -> None:
        for launch in launches:
            self.all.append(
                SimpleNamespace(
                    case=launch.case,
                    case_id=launch.case.case_id,
                    plan_index=launch.plan_index,
                    status=status,
                    machine=machine_id(),
                    code=None,
                    campaign=launch.campaign,
                    campaign_ids=CampaignIds(campaign_id, replaces),
                    started_at="",
                )
            )


@pytest.fixture
def launches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[PlannedLaunch]:
    monkeypatch.setattr(campaign_ids, "is_current", lambda code, fabric: True)
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "suite.yaml").write_text(SUITE)
    return plan(load_suite(tmp_path / "x"), "e", "small")


def of(launches: list[PlannedLaunch], campaign: int) -> list[PlannedLaunch]:
    return [launch for launch in launches if launch.campaign == campaign]


def test_campaigns_are_run_in_their_order_and_an_interrupted_one_goes_on(launches: list[PlannedLaunch]) -> None:
    store: Any = Records()
    assert chosen.next_campaign(launches, store) == 0
    store.add(of(launches, 0)[:3])
    assert chosen.next_campaign(launches, store) == 0
    store.add(of(launches, 0)[3:])
    assert chosen.next_campaign(launches, store) == 1
    store.add([*of(launches, 1), *of(launches, 2)])
    assert chosen.next_campaign(launches, store) == 2


def test_a_failed_launch_is_tried_again_after_every_campaign_was_tried(launches: list[PlannedLaunch]) -> None:
    store: Any = Records()
    store.add(of(launches, 0)[1:])
    store.add(of(launches, 0)[:1], status="failed")
    assert chosen.next_campaign(launches, store) == 1
    store.add([*of(launches, 1), *of(launches, 2)])
    assert chosen.next_campaign(launches, store) == 0


def test_what_cannot_run_here_keeps_no_campaign_open(launches: list[PlannedLaunch]) -> None:
    store: Any = Records()
    store.add(launches, status="not_runnable")
    assert chosen.next_campaign(launches, store) == 2


def ids_of(
    planned: list[PlannedLaunch], store: Any, begun: list[PlannedLaunch], again: bool = False
) -> tuple[str, dict[int, set[CampaignIds]]]:
    """The id that a call draws, and the ids of each repetition of `planned`."""
    call, by_block = CallIds(begun, store, None, again), dict[int, set[CampaignIds]]()
    for launch in planned:
        by_block.setdefault(launch.plan_index, set()).add(call.of(launch))
    return call.own, by_block


def test_only_a_block_that_was_begun_keeps_its_id(launches: list[PlannedLaunch]) -> None:
    store: Any = Records()
    store.add(of(launches, 0)[:1], campaign_id="kept")
    own, ids = ids_of(of(launches, 0), store, launches)
    assert ids == {0: {CampaignIds("kept")}, 1: {CampaignIds(own)}}
    assert len({CallIds(launches, store).own for _ in range(3)}) == 3


def test_a_block_of_which_nothing_ended_well_is_not_begun(launches: list[PlannedLaunch]) -> None:
    store: Any = Records()
    store.add(of(launches, 0), status="failed", campaign_id="failed")
    own, ids = ids_of(of(launches, 0), store, launches)
    assert ids == {0: {CampaignIds(own)}, 1: {CampaignIds(own)}}


def test_later_blocks_of_a_stopping_rule_have_the_id_of_the_call_too(launches: list[PlannedLaunch]) -> None:
    store: Any = Records()
    further = [replace(launch, plan_index=9) for launch in of(launches, 0)[:2]]
    own, ids = ids_of(further, store, launches)
    assert ids == {9: {CampaignIds(own)}}
    store.add(further[:1], campaign_id="kept")
    assert ids_of(further, store, launches)[1] == {9: {CampaignIds("kept")}}


def test_of_merged_blocks_the_one_with_most_launches_goes_on(launches: list[PlannedLaunch]) -> None:
    store: Any = Records()
    store.add(of(launches, 0)[:1], campaign_id="few")
    store.add(of(launches, 0)[:2], campaign_id="most")
    assert ids_of(of(launches, 0)[:2], store, launches)[1] == {0: {CampaignIds("most")}}


def test_a_block_that_is_made_again_is_a_campaign_of_its_own_and_replaces_the_first(
    launches: list[PlannedLaunch],
) -> None:
    store: Any = Records()
    store.add(of(launches, 0)[:2], campaign_id="first")
    own, ids = ids_of(of(launches, 0), store, launches, again=True)
    assert ids == {0: {CampaignIds(own, "first")}, 1: {CampaignIds(own)}}
    assert CampaignIds(own, "first").block == CampaignIds("first").block == "first"
    store.add(of(launches, 0)[:2], campaign_id=own, replaces="first")
    third, ids = ids_of(of(launches, 0), store, launches, again=True)
    assert third != own and ids[0] == {CampaignIds(third, "first")}
