"""Rank programs over the mailbox of every kind of transport, slept and simulated: cancelled receives, lock words,
memory for regions, and calls of who has ended."""

from __future__ import annotations

from pathlib import Path

import pytest

from scaleproof.spec import registry
from tests.integration.test_rank_programs import SIMULATED, counted, launched, planned, written

PROGRAM = '''"""Ranks that share a counter behind a lock word, pass a token, and call rank 0, which ends first."""

import time

import numpy as np

from scaleproof.rank_programs.effects import (
    ANY,
    Await,
    Call,
    Cancel,
    CompareAndSwap,
    Compute,
    Flag,
    Get,
    Put,
    Receive,
    Send,
    Sleep,
    Start,
)
from scaleproof.rank_programs.rank_program import RankProgram


class PROGRAM(RankProgram):
    def regions(self):
        self.counter = self.memory(1, "int64")
        self.pair, self.wrong = np.zeros(2), []
        return {"counter": self.counter, "pair": self.pair}

    def serve(self, source, name, value):
        return self.pair if name == "pair" else value + self.rank

    def main(self):
        for step in self.steps():
            for _ in range(20):
                self.pair[0] += 1
                time.sleep(0.001)  # the program's own code: who gets or calls meanwhile waits for its next effect
                self.pair[1] += 1
                for pair in ((yield Get(0, "pair")), (yield Call(0, np.zeros(0), "pair"))):
                    self.expect("half", pair[0], pair[1])
            never = yield Start(Receive(ANY, 9), 1)
            posted = yield Start(Receive((self.rank - 1) % self.world_size, 4), 2)
            yield Sleep(0.02 * (self.rank + 1))  # in virtual time the lock is then free for each
            while (yield CompareAndSwap(0, "lock", 0, 1)):
                yield Compute(0.001, None, "tries")
            yield Put(0, (yield Get(0, "counter")) + 1, "counter")
            yield Flag(0, "lock", -1)
            yield Send((self.rank + 1) % self.world_size, np.array([step]), 4)
            self.expect("token", (yield Await(posted)).value.tolist(), [step])
            self.expect("cancelled", (yield Cancel(never)), True)
        if self.rank:
            yield Sleep(0.3)  # rank 0 has ended
            self.expect("answer", (yield Call(0, np.array([5]), "add")).tolist(), [5])

    def expect(self, what, found, wanted):
        if found != wanted:
            self.wrong.append(f"{what} {found}, wanted {wanted}")

    def checks(self):
        yield "as expected", not self.wrong, "; ".join(self.wrong)
        if self.rank == 0:
            wanted = self.world_size * (self.case.warmup + self.case.iterations)
            yield "counter", self.counter[0] == wanted, f"{self.counter[0]}, wanted {wanted}"
'''
FIELDS = {"entry": "shares", "ranks": 3, "options": {"slept": 1}}


@pytest.mark.parametrize("transport", ["tcp", "shm", "mpi", "ucx", "grpc", "gloo"])
def test_a_program_does_the_same_over_each_transport_and_simulated(tmp_path: Path, transport: str) -> None:
    plugin = registry.get("transport", transport)
    if not (availability := registry.availability("transport", transport)).available:
        pytest.skip(f"{availability.why}: {availability.advice}")
    programs = written(tmp_path / "programs", "shares", PROGRAM)
    record, samples = launched(tmp_path, FIELDS, programs, transport=transport, launcher=plugin.launcher)
    simulated, predicted = launched(tmp_path, FIELDS, programs, fabric=SIMULATED)
    for each in (record, simulated):
        assert all(check.passed for check in each.checks), [check.detail for check in each.checks]
    assert {check.name for check in record.checks} == {"as expected", "counter"}
    assert without_tries(counted(samples)) == without_tries(counted(predicted))


def without_tries(counts: dict[tuple[int, str], int]) -> dict[tuple[int, str], int]:
    return {key: count for key, count in counts.items() if key[1] != "tries"}


def test_a_transport_without_a_mailbox_says_why(tmp_path: Path) -> None:
    programs = written(tmp_path / "programs", "shares", PROGRAM)
    if not registry.availability("transport", "horovod").available:
        pytest.skip("there is no Horovod here")
    outcome, store = planned(tmp_path, FIELDS, programs, transport="horovod")
    record, _ = store.load(outcome.launches[0])
    assert record.failure is not None and "not 'horovod': it has no sends and receives" in record.failure.message
