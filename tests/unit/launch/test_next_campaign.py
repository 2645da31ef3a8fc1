"""Which campaign a call of `run` makes: the first that is not finished, under the id that it began with."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from scaleproof.launch import next_campaign as chosen
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

    def add(self, launches: list[PlannedLaunch], status: str = "ok", campaign_id: str = "a") -> None:
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
                    campaign_id=campaign_id,
                )
            )


@pytest.fixture
def launches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[PlannedLaunch]:
    monkeypatch.setattr(chosen, "is_current", lambda code, fabric: True)
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


def test_a_campaign_keeps_its_id_and_another_one_gets_a_new_one(launches: list[PlannedLaunch]) -> None:
    store: Any = Records()
    store.add(of(launches, 0)[:1], campaign_id="kept")
    assert chosen.campaign_id(of(launches, 0), store) == "kept"
    new = {chosen.campaign_id(of(launches, 1), store) for _ in range(3)}
    assert len(new) == 3 and "kept" not in new


def test_of_merged_campaigns_the_one_with_most_launches_goes_on(launches: list[PlannedLaunch]) -> None:
    store: Any = Records()
    store.add(of(launches, 0)[:1], campaign_id="few")
    store.add(of(launches, 0)[:2], campaign_id="most")
    assert chosen.campaign_id(of(launches, 0), store) == "most"
