"""The rank programs of suite validation on three clocks: over tcp in processes, with slept compute on this machine and
on an emulated cluster, and simulated."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from scaleproof.cli import main
from scaleproof.launch.plan_outcome import PlanOutcome
from scaleproof.launch.supervisor import run_plan
from scaleproof.paths import PROJECT
from scaleproof.rank_programs.graph.rank_graph import Builder
from scaleproof.record.store import Store
from scaleproof.simulate.predict import Predictor
from scaleproof.simulate.rank_graph import graph_file
from scaleproof.spec.plan import PlannedLaunch
from tests.integration.netns import need_netns
from tests.short_form import case_from

STALL_S = 5.0
"""How long nothing may move, in s: short, so that a circle of ranks is seen soon."""
PROGRAMS = PROJECT / "suites" / "validation" / "programs"
SERVER = {"entry": "async_server", "ranks": 3, "sizes": [256 << 10], "options": {"compute_ms": 4}}
PIPELINE = {
    "entry": "pipeline",
    "ranks": 2,
    "sizes": [16 << 10],
    "options": {"compute_ms": 4, "micro_batches": 4, "rows": 8},
}
ONE_SIDED = {"entry": "put_server", "ranks": 3, "sizes": [256 << 10], "options": {"compute_ms": 2}}
SIMULATED = {"name": "simulated", "link_mbit": 10000, "costs": "stated"}


def planned(tmp_path: Path, program: dict[str, Any], programs: Path, **fields: Any) -> tuple[PlanOutcome, Store]:
    base = {
        "program": "own",
        "suite": "t",
        "experiment": "t",
        "arm": "t",
        "transport": "tcp",
        "iterations": 3,
        "warmup": 1,
    }
    options = program["options"] | fields.pop("options", {})
    case = case_from(base | program | fields | {"options": options})
    results = tmp_path / "results"
    outcome = run_plan(
        [PlannedLaunch(case, 0, 1, 0, str(programs))],
        results,
        size="smoke",
        deadline_s=60,
        stall_s=STALL_S,
        simulator=Predictor(results),
    )
    return outcome, Store(results)


def launched(
    tmp_path: Path, program: dict[str, Any], programs: Path = PROGRAMS, **fields: Any
) -> tuple[Any, pd.DataFrame]:
    outcome, store = planned(tmp_path, program, programs, **fields)
    record, _ = store.load(outcome.launches[0])
    assert record.status == "ok", record.failure
    return record, store.samples(record).to_pandas()


def counted(samples: pd.DataFrame) -> dict[tuple[int, str], int]:
    """How often each rank recorded each event that the program yields, and the bytes that it sent."""
    chosen = samples[samples["event"].isin(["step", "compute", "forward", "backward", "send", "wait", "put", "get"])]
    counts: dict[tuple[int, str], int] = chosen.groupby(["rank", "event"], observed=True).size().to_dict()
    moved = chosen.groupby(["rank", "event"], observed=True)["nbytes"].sum()
    return counts | {(int(rank), f"{event}, bytes"): int(nbytes) for (rank, event), nbytes in moved.items()}


COLLECTIVES = """
from scaleproof.rank_programs.effects import AwaitAll, Collective, Compute, Start
from scaleproof.rank_programs.rank_program import RankProgram
import numpy as np

class Program(RankProgram):
    def groups(self):
        return {"pairs": ((0, 1), (2, 3)), "across": ((0, 2), (1, 3))}

    def main(self):
        self.same = True
        for step in self.steps():
            values = [np.full(30000, self.rank + 0.1 * step) for _ in range(3)]
            started = []
            for lane, (group, value) in enumerate(zip(("all", "pairs", "across"), values)):
                started.append((yield Start(Collective("all_reduce", value, step, group), lane)))
            yield Compute(0.001)
            yield AwaitAll(tuple(started))
            part = yield Collective("all_gather", np.full(8, float(self.rank)), 100 + step)
            self.same &= part.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
            for value, ranks in zip(values, (range(4), range(self.rank // 2 * 2, self.rank // 2 * 2 + 2),
                                             range(self.rank % 2, 4, 2))):
                self.same &= np.allclose(value, sum(rank + 0.1 * step for rank in ranks))

    def checks(self):
        return [("sums", bool(self.same), "")]

PROGRAM = Program
"""


def test_collectives_in_groups_and_on_lanes_do_the_same_in_processes_and_simulated(tmp_path: Path) -> None:
    (tmp_path / "sums.py").write_text(COLLECTIVES)
    program = {"entry": "sums", "ranks": 4, "options": {}, "collective": "halving_doubling"}
    real, in_processes = launched(tmp_path, program, tmp_path)
    simulated, predicted = launched(tmp_path, program, tmp_path, fabric=SIMULATED)
    for record, samples in ((real, in_processes), (simulated, predicted)):
        assert [(check.name, check.passed) for check in record.checks] == [("sums", True)] * 4
        moved = samples[samples["event"].isin(["all_reduce", "all_gather", "send"])]
        assert moved.groupby("event", observed=True)["nbytes"].agg(["size", "sum"]).T.to_dict("list") == {
            "all_gather": [16, 16 * 64],
            "all_reduce": [48, 48 * 240000],
        }


@pytest.mark.parametrize("program", [SERVER, PIPELINE, ONE_SIDED], ids=lambda program: program["entry"])
def test_a_program_does_the_same_in_processes_slept_and_simulated(tmp_path: Path, program: dict[str, Any]) -> None:
    real, in_processes = launched(tmp_path, program)
    slept, replayed = launched(tmp_path, program, options={"slept": 1})
    simulated, predicted = launched(tmp_path, program, fabric=SIMULATED)
    assert (real.evidence, slept.evidence, simulated.evidence) == ("measured", "emulated", "simulated")
    assert all(check.passed for record in (real, slept, simulated) for check in record.checks)
    assert {check.name for check in real.checks} == {check.name for check in simulated.checks} != set()
    assert counted(in_processes) == counted(replayed) == counted(predicted)


@pytest.mark.parametrize("program", [SERVER, PIPELINE, ONE_SIDED], ids=lambda program: program["entry"])
def test_a_program_does_the_same_on_an_emulated_cluster(tmp_path: Path, program: dict[str, Any]) -> None:
    need_netns()
    fabric = {"name": "netns", "link_mbit": 1000}
    emulated, replayed = launched(tmp_path, program, options={"slept": 1}, fabric=fabric)
    simulated, predicted = launched(tmp_path, program, fabric=SIMULATED)
    assert emulated.evidence == "emulated" and all(check.passed for check in emulated.checks)
    assert {check.name for check in emulated.checks} == {check.name for check in simulated.checks}
    assert counted(replayed) == counted(predicted)


def written(folder: Path, name: str, program: str) -> Path:
    """A folder of programs with this one in it."""
    folder.mkdir()
    (folder / f"{name}.py").write_text(program)
    return folder


@pytest.mark.parametrize("fabric", ["host", SIMULATED], ids=["tcp", "simulated"])
def test_a_forgotten_option_is_one_line_of_the_launch(tmp_path: Path, fabric: Any) -> None:
    outcome, store = planned(tmp_path, PIPELINE | {"options": {"compute_ms": 4, "rows": 8}}, PROGRAMS, fabric=fabric)
    record, _ = store.load(outcome.launches[0])
    assert record.status == "failed" and record.failure is not None
    assert record.failure.message.endswith(
        "programs/pipeline.py needs option 'micro_batches' (options.micro_batches); the case has compute_ms, rows"
    )


def test_a_rank_that_fails_while_a_lane_waits_ends_the_launch_within_seconds(tmp_path: Path) -> None:
    programs = written(tmp_path / "programs", "fails", FAILS)
    outcome, store = planned(tmp_path, {"entry": "fails", "ranks": 2, "options": {}}, programs)
    record, _ = store.load(outcome.launches[0])
    assert record.failure is not None and record.failure.code == "rank_raised" and record.wall_s < 20
    assert record.failure.message.endswith("ArithmeticError: no sum")


def test_an_error_of_a_detached_effect_ends_the_launch(tmp_path: Path) -> None:
    programs = written(tmp_path / "programs", "detaches", DETACHES)
    outcome, store = planned(tmp_path, {"entry": "detaches", "ranks": 2, "options": {}}, programs)
    record, _ = store.load(outcome.launches[0])
    assert record.failure is not None and record.failure.code == "rank_raised" and record.failure.rank == 0
    assert record.failure.message.endswith("KeyError: 9"), "there is no rank 9"


def test_a_program_that_waits_for_ever_in_virtual_time_is_a_failed_launch_with_the_circle(tmp_path: Path) -> None:
    programs = written(tmp_path / "programs", "circle", CIRCLE)
    outcome, store = planned(tmp_path, {"entry": "circle", "ranks": 2, "options": {}}, programs, fabric=SIMULATED)
    record, _ = store.load(outcome.launches[0])
    assert record.status == "failed" and record.failure is not None
    assert record.failure.message == (
        "programs/circle.py: ranks wait for each other for ever: rank 0, step 0 (receives from rank 1, tag 4); "
        "then rank 1, step 0 (receives from rank 0, tag 4)"
    )


@pytest.mark.parametrize("transport", ["tcp", "shm", "grpc"])
def test_ranks_in_processes_that_wait_for_each_other_are_shown_with_what_each_does(
    tmp_path: Path, transport: str
) -> None:
    programs = written(tmp_path / "programs", "circle", CIRCLE)
    outcome, store = planned(tmp_path, {"entry": "circle", "ranks": 2, "options": {}}, programs, transport=transport)
    record, _ = store.load(outcome.launches[0])
    assert record.failure is not None and record.failure.code == "stalled"
    waits = [f"rank {rank} (receives from rank {1 - rank}, tag 4) waits for rank {1 - rank}" for rank in (0, 1)]
    circles = tuple(f"deadlock: {', '.join(each)}" for each in (waits, waits[::-1]))
    assert record.failure.message.endswith(circles), "from the rank on that was silent first"


DETACHES = """import numpy as np
from scaleproof.rank_programs.effects import Call, Detach
from scaleproof.rank_programs.rank_program import RankProgram


class PROGRAM(RankProgram):
    def main(self):
        for _ in self.steps():
            if self.rank == 0:
                yield Detach(Call(9, np.zeros(4)))
"""
FAILS = """from scaleproof.rank_programs.effects import Receive, Start
from scaleproof.rank_programs.rank_program import RankProgram


class PROGRAM(RankProgram):
    def main(self):
        for _ in self.steps():
            yield Start(Receive(1 - self.rank, 4))
            if self.rank == 0:
                raise ArithmeticError("no sum")
            yield Receive(0, 5)
"""
CIRCLE = """from scaleproof.rank_programs.effects import Receive
from scaleproof.rank_programs.rank_program import RankProgram


class PROGRAM(RankProgram):
    def main(self):
        for _ in self.steps():
            yield Receive(1 - self.rank, 4)
"""
GRAPH = """num_ranks 2
rank 0 {
l1: calc 20000000
l2: send 100000b to 1 tag 3
l2 requires l1
l3: recv 8b from -1 tag 4
l3 requires l2
}
rank 1 {
l1: recv 100000b from 0 tag 3
l2: calc 30000000
l2 requires l1
l3: send 8b to 0 tag 4
l3 requires l2
}
"""


@pytest.mark.parametrize("how", ["--slept", ""])
def test_a_goal_file_runs_in_processes(tmp_path: Path, capsys: pytest.CaptureFixture[str], how: str) -> None:
    path = tmp_path / "there_and_back.goal"
    path.write_text(GRAPH)
    assert main(["goal", "run", str(path), "--steps", "2", "--json", *how.split()]) == 0
    values = json.loads(capsys.readouterr().out)
    assert (values["evidence"], values["steps"], values["nodes"], values["ranks"]) == ("emulated", 2, 6, 2)
    assert values["fastest_s"] >= 0.05, "20 ms of computing, a message, 30 ms of computing"


def test_a_chakra_trace_runs_in_processes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    builder = Builder(3)
    call = builder.collective("all_reduce", 30_000, range(3))
    for rank in range(3):
        builder.join(rank, call, [builder.compute(rank, 0.01)])
    graph_file.write_graph(tmp_path / "trace", builder.graph(), "test")
    assert main(["goal", "run", str(tmp_path / "trace"), "--slept", "--steps", "2", "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert values["ranks"] == 3 and values["fastest_s"] >= 0.01


def test_a_goal_file_is_the_same_program_on_three_clocks(tmp_path: Path) -> None:
    path = tmp_path / "there_and_back.goal"
    path.write_text(GRAPH)
    program = {"entry": "graph", "ranks": 2, "options": {"graph": str(path)}}
    folder = Path(graph_file.__file__).with_name("programs")
    burnt, in_processes = launched(tmp_path, program, folder, options={"compute": "emulated"})
    slept, replayed = launched(tmp_path, program, folder, options={"slept": 1})
    simulated, predicted = launched(tmp_path, program, folder, fabric=SIMULATED)
    assert all(check.passed for record in (burnt, slept, simulated) for check in record.checks)
    assert (burnt.evidence, slept.evidence, simulated.evidence) == ("emulated", "emulated", "simulated")
    assert counted(in_processes) == counted(replayed) == counted(predicted)
    steps = predicted[predicted["event"] == "step"]
    assert ((steps["end_ns"] - steps["start_ns"]) / 1e9).between(0.05, 0.052).any()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("num_ranks 2\nrank 0 {\nrecv 8b from 1 tag 2\n}\n", "rank 0, node 0 (receives from rank 1, tag 2): rank 1"),
        ("num_ranks 1\nrank 0 {\na: calc 1\nb: calc 1\na requires b\nb requires a\n}\n", "in a circle: rank 0, node"),
        (
            "num_ranks 2\nrank 0 {\na: recv 8b from 1\nb: send 8b to 1\nb requires a\n}\n"
            "rank 1 {\na: recv 8b from 0\nb: send 8b to 0\nb requires a\n}\n",
            "ranks wait for each other for ever: rank 0, node",
        ),
    ],
)
def test_a_graph_that_cannot_run_starts_no_process(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, message: str
) -> None:
    path = tmp_path / "wrong.goal"
    path.write_text(text)
    assert main(["goal", "run", str(path)]) == 2
    error = capsys.readouterr().err
    assert "wrong.goal: " in error and message in error and error.count("\n") == 1


SLEEPER = """
from scaleproof.rank_programs.effects import Sleep
from scaleproof.rank_programs.rank_program import RankProgram

class PROGRAM(RankProgram):
    def main(self):
        for step in self.steps():
            yield Sleep(0.05)
"""


def test_a_rank_program_that_sleeps_for_longer_than_a_poll_says_so(tmp_path: Path) -> None:
    programs = written(tmp_path / "programs", "sleeper", SLEEPER)
    program = {"entry": "sleeper", "ranks": 2, "options": {}}
    outcome, store = planned(tmp_path, program, programs)
    failure = store.load(outcome.launches[0])[0].failure
    assert failure is not None and "needs the option `slept: 1`" in failure.message
    assert launched(tmp_path, program, programs, options={"slept": 1})[0].evidence == "emulated"
