"""Faults of a case: what they mean, what is wrong with one in one line, and who cannot bear them."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from scaleproof.spec.faults import Fault, Moment, faults_of
from tests.short_form import train_case

BASE: dict[str, Any] = {
    "transport": "tcp",
    "workload": "dnn_digits",
    "data": "digits",
    "minibatch": 48,
    "ranks": 4,
    "steps": 4,
}


def test_faults_say_which_ranks_die_come_back_and_pause() -> None:
    faults = faults_of("kill:3@10+replace:1,0.5@2.5s + pause:2,1@4+lose:0.1,0.2")
    assert faults.mortal == {1, 3} and faults.returning == {1}
    assert faults.death_of(3) == Fault("kill", 3, Moment(step=10))
    assert faults.death_of(1) == Fault("replace", 1, Moment(seconds=2.5), 0.5)
    assert faults.death_of(2) is None and [pause.seconds for pause in faults.pauses_of(2)] == [1.0]
    assert (faults.loss.share, faults.loss.patience_s) == (0.1, 0.2)
    assert faults.names == {"kill", "replace", "pause", "lose"}
    assert not faults_of(None).names


def test_the_same_calls_get_lost_whoever_asks_and_as_many_as_said() -> None:
    loss = faults_of("lose:0.2,0.1").loss
    taken = [[loss.takes(7, rank, number) for number in range(2000)] for rank in range(2)]
    assert [sum(each) / 2000 for each in taken] == pytest.approx([0.2, 0.2], abs=0.03)
    assert taken[0] != taken[1] and taken[0][5] == loss.takes(7, 0, 5)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("kil:3@4", "did you mean 'kill'"),
        ("kill:3", "write kill:RANK@MOMENT"),
        ("pause:1@3", "write pause:RANK,S@MOMENT"),
        ("lose:0.1", "write lose:SHARE,S"),
        ("lose:0.1,1@3", "write lose:SHARE,S"),
        ("kill:1.5@3", "RANK is a whole number"),
        ("kill:x@3", "RANK is a number of at least 0"),
        ("kill:1@-3", "MOMENT is a step (10) or s of true time (2.5s)"),
        ("kill:1@-3s", "MOMENT is a number of at least 0"),
        ("replace:1,inf@3", "S is a number of at least 0"),
        ("lose:1,1", "SHARE is above 0 and below 1"),
        ("lose:0.1,1+lose:0.2,1", "one `lose` is for all calls"),
    ],
)
def test_a_wrong_fault_is_told_in_one_line(text: str, wrong: str) -> None:
    with pytest.raises(ValueError) as raised:
        faults_of(text)
    assert wrong in str(raised.value) and "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("strategy", "faults", "more", "wrong"),
    [
        ({"name": "gossip"}, "kill:4@1", {}, "kill of rank 4, and the last one is 3"),
        ({"name": "gossip"}, "kill:1@9", {}, "kill at step 9, and the last one is 5"),
        ({"name": "gossip"}, "kill:0@0+replace:0,1@1", {}, "a rank is killed twice"),
        ({"name": "gossip"}, "replace:0,1@0+replace:1,1@1", {}, "one rank of a case can have a successor"),
        ({"name": "gossip"}, "kill:0@0+kill:1@0+kill:2@0+kill:3@0", {}, "all 4 workers are killed"),
        ({"name": "server"}, "kill:0@1", {}, "rank 0 is a server"),
        ({"name": "server"}, "pause:0,1@1", {}, "has no steps"),
        ({"name": "local_sgd"}, "kill:1@1", {}, "strategy 'local_sgd' does not bear kill; use downpour"),
        ({"name": "server"}, "lose:0.1,1", {}, "strategy 'server' does not bear lose; use gossip"),
        ({"name": "gossip"}, "replace:1,1@1", {"transport": "shm"}, "transport 'shm' does not bear replace; use tcp"),
        (
            {"name": "gossip"},
            "kill:1@1",
            {"transport": "mpi", "launcher": "mpirun"},
            "'mpi' does not bear kill; use grpc or shm or tcp",
        ),
        (
            {"name": "gossip"},
            "kill:1@1",
            {"fabric": "guests", "nodes": 2},
            "'guests' does not outlive one",
        ),
        ({"name": "sync"}, "pause:1,1@1", {"collective": "ring"}, "leave it out"),
    ],
)
def test_a_fault_that_a_case_cannot_have_is_one_line(
    strategy: dict[str, Any], faults: str, more: dict[str, Any], wrong: str
) -> None:
    with pytest.raises((ValidationError, ValueError)) as raised:
        train_case(**{**BASE, "strategy": strategy, "faults": faults, **more})
    assert wrong in str(raised.value)


@pytest.mark.parametrize("faults", ["kill:1@3", "pause:1,2@0.5s", "kill:1@1+kill:2@2", None])
def test_faults_that_a_case_can_have(faults: str | None) -> None:
    case = train_case(**{**BASE, "strategy": {"name": "server"}, "faults": faults})
    assert case.faults == faults


def test_in_virtual_time_any_transport_bears_a_death() -> None:
    virtual = {"fabric": "simulated", "transport": "gloo", "faults": "replace:1,1@1"}
    assert train_case(**{**BASE, "strategy": {"name": "gossip"}, **virtual}).faults
