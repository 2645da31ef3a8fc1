"""Decisions do not depend on sentences: with noise in place of every sentence of a failure, they stay the same."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from scaleproof.core.board import Board
from scaleproof.core.record_schema import PreflightCheck, Record
from scaleproof.launch import single_launch, supervisor
from scaleproof.launch.finish.compose_record import failure_of
from scaleproof.launch.finish.failure_advice import ADVICE
from scaleproof.launch.nodes.allocated_nodes import AllocatedNodes, Node, lost_node
from scaleproof.launch.nodes.host_list import Host
from scaleproof.launch.nodes.node_state import LaunchNodes, NodeState
from scaleproof.launch.nodes.received_files import ReceivedFiles
from scaleproof.launch.nodes.requested_nodes import Allocation
from scaleproof.launch.obstacle import Obstacle
from scaleproof.launch.plan_outcome import NODES_LOST, PlanOutcome
from scaleproof.launch.preflight.experiment_preflight import Preflight
from scaleproof.launch.preflight.rank_preflight import no_answer
from scaleproof.launch.start.execute import LaunchEnd
from scaleproof.launch.watch.failure_signs import Sign, Watch, root_cause
from scaleproof.record.store import Store
from scaleproof.spec.plan import PlannedLaunch
from tests.unit.launch.test_allocated_nodes import answer, case


def as_it_is(sentence: str) -> str:
    return sentence


def noise(sentence: str) -> str:
    return hashlib.sha256(sentence.encode()).hexdigest()


SENTENCES = pytest.mark.parametrize("reword", [as_it_is, noise])


def three_nodes() -> AllocatedNodes:
    names = ("n1", "n2", "n3")
    allocation = Allocation("hosts", "", tuple(Host(name, 2) for name in names), "ssh")
    return AllocatedNodes(allocation, tuple(Node(name, 2, "", answer(name)) for name in names), "eth0")


def run(
    results: Path,
    monkeypatch: pytest.MonkeyPatch,
    reword: Callable[[str], str],
    ends: list[Sign | None],
    checks: list[PreflightCheck] | None = None,
    **options: Any,
) -> tuple[PlanOutcome, list[Record]]:
    """A plan of three launches of three ranks each, then of two ranks, whose launches end with these signs in turn."""
    signs = iter(ends)

    def execute(*_: object) -> LaunchEnd:
        sign = next(signs, None)
        return LaunchEnd(sign, [], 0.1)

    refusals = iter([checks or []])
    monkeypatch.setattr(single_launch, "execute", execute)
    monkeypatch.setattr(Preflight, "of", lambda self, case: next(refusals, []))
    for code, advice in ADVICE.items():
        monkeypatch.setitem(ADVICE, code, reword(advice))
    cases = [case(ranks=ranks) for ranks in (3, 2, 3)]
    plan = [PlannedLaunch(each, index, 0, index) for index, each in enumerate(cases)]
    outcome = supervisor.run_plan(plan, results, size="ci", deadline_s=5.0, allocated=three_nodes(), **options)
    store = Store(results)
    return outcome, [store.load(launch)[0] for launch in outcome.launches]


@SENTENCES
def test_recovery_from_a_lost_node_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reword: Any) -> None:
    lost = Sign("node_lost", 2, 0, reword("node n3: its connection closed"), 9, node="n3")
    outcome, records = run(tmp_path, monkeypatch, reword, [lost])
    assert outcome.allocated is not None and outcome.allocated.lost == {"n3"}
    first, second = records
    assert first.failure is not None and (first.failure.code, first.failure.node) == ("node_lost", "n3")
    assert second.placement is not None and [node.name for node in second.placement.nodes] == ["n1", "n2"]
    assert (outcome.waiting, outcome.exit_code, outcome.ended) == (2, NODES_LOST, False)


@SENTENCES
def test_a_node_lost_in_the_preflight_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reword: Any) -> None:
    sign = Sign("node_lost", 0, 0, reword("node n1: nothing was heard of it for 10 s"), 9, node="n1")
    outcome, records = run(tmp_path, monkeypatch, reword, [], [no_answer(sign, "ranks", reword("3 ranks: "))])
    assert outcome.allocated is not None and outcome.allocated.lost == {"n1"}
    assert records[0].failure is not None and records[0].failure.code == "node_lost"
    assert (outcome.waiting, outcome.exit_code) == (2, NODES_LOST)


@SENTENCES
def test_an_experiment_that_stops_at_the_loss_of_a_node_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reword: Any
) -> None:
    lost = Sign("node_lost", 2, 0, reword("node n3: its connection closed"), 9, node="n3")
    outcome, records = run(tmp_path, monkeypatch, reword, [lost], on_node_loss="stop")
    assert (len(records), outcome.exit_code, outcome.ended) == (1, NODES_LOST, True)


@SENTENCES
@pytest.mark.parametrize("code", sorted(set(ADVICE) - {"node_lost", "interrupted"}))
def test_every_failure_keeps_its_code_and_ends_the_plan_with_the_same_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reword: Any, code: str
) -> None:
    outcome, records = run(tmp_path, monkeypatch, reword, [Sign(code, 1, 0, reword("something happened"), peer=0)])
    failure = records[0].failure
    assert failure is not None and (failure.code, failure.rank, failure.peer) == (code, 1, 0)
    assert outcome.exit_code == 1 and bool(outcome.stopped) == (code == "disk_full")


@SENTENCES
def test_the_disk_check_of_the_preflight_ends_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reword: Any
) -> None:
    full = PreflightCheck(code="disk", passed=False, message=reword("0 B free"), advice=reword("free some"))
    outcome, records = run(tmp_path, monkeypatch, reword, [], [full])
    assert [record.failure.code for record in records if record.failure] == ["disk_full"] and outcome.stopped


def test_a_launch_that_cannot_run_has_one_record_per_requirement_however_its_reason_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    obstacles = [
        Obstacle("mpich is not installed", "install it", "launcher mpich"),
        Obstacle("another sentence for the same", "other advice", "launcher mpich"),
        Obstacle("mpich is not installed", "install it", "launcher mpirun"),
    ]
    launches = set()
    for hindrance in obstacles:
        monkeypatch.setattr(single_launch, "obstacle", lambda *_, hindrance=hindrance: hindrance)
        outcome, _ = run(tmp_path, monkeypatch, as_it_is, [])
        assert outcome.not_runnable == outcome.planned == 3
        launches |= set(outcome.launches)
    assert len(launches) == 6, "three launches for each of two requirements"


@SENTENCES
def test_from_the_coordinator_to_the_record_a_lost_node_keeps_its_name(tmp_path: Path, reword: Any) -> None:
    (tmp_path / "rendezvous").mkdir()
    node = NodeState(1, "n2", ReceivedFiles(tmp_path, 1, (1,)))
    LaunchNodes(tmp_path, [node]).lose(node, "node_lost", "its connection closed")
    path = tmp_path / "exit-1.json"
    end = json.loads(path.read_text())
    path.write_text(json.dumps(end | {"message": reword(end["message"])}))
    watch = Watch(tmp_path, Board(tmp_path / "board", 2))
    failure = failure_of(root_cause(watch.poll()))
    assert (failure.code, failure.rank, failure.node) == ("node_lost", 1, "n2")
    assert lost_node(SimpleNamespace(failure=failure)) == "n2"  # type: ignore[arg-type]
