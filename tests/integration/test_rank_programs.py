"""The rank programs of suite validation on three clocks: over tcp in processes, with slept compute, and simulated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from scaleproof.launch.supervisor import run_plan
from scaleproof.paths import PROJECT
from scaleproof.record.store import Store
from scaleproof.simulate.predict import Predictor
from scaleproof.spec.plan import PlannedLaunch
from tests.short_form import case_from

PROGRAMS = PROJECT / "suites" / "validation" / "programs"
SERVER = {"entry": "async_server", "ranks": 3, "sizes": [256 << 10], "options": {"compute_ms": 4}}
PIPELINE = {"entry": "pipeline", "ranks": 2, "sizes": [16 << 10], "options": {"compute_ms": 4, "micro_batches": 4}}
ONE_SIDED = {"entry": "put_server", "ranks": 3, "sizes": [256 << 10], "options": {"compute_ms": 2}}
SIMULATED = {"name": "simulated", "link_mbit": 10000, "costs": "stated"}


def launched(tmp_path: Path, program: dict[str, Any], **fields: Any) -> tuple[Any, pd.DataFrame]:
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
        [PlannedLaunch(case, 0, 1, 0, str(PROGRAMS))],
        results,
        size="smoke",
        deadline_s=60,
        simulator=Predictor(results),
    )
    store = Store(results)
    record, _ = store.load(outcome.launches[0])
    assert record.status == "ok", record.failure
    return record, store.samples(record).to_pandas()


def counted(samples: pd.DataFrame) -> dict[tuple[int, str], int]:
    """How often each rank recorded each event that the program yields, and the bytes that it sent."""
    chosen = samples[samples["event"].isin(["step", "compute", "forward", "backward", "send", "wait", "put", "get"])]
    counts: dict[tuple[int, str], int] = chosen.groupby(["rank", "event"], observed=True).size().to_dict()
    moved = chosen.groupby(["rank", "event"], observed=True)["nbytes"].sum()
    return counts | {(int(rank), f"{event}, bytes"): int(nbytes) for (rank, event), nbytes in moved.items()}


@pytest.mark.parametrize("program", [SERVER, PIPELINE, ONE_SIDED], ids=lambda program: program["entry"])
def test_a_program_does_the_same_in_processes_slept_and_simulated(tmp_path: Path, program: dict[str, Any]) -> None:
    real, in_processes = launched(tmp_path, program)
    slept, replayed = launched(tmp_path, program, options={"slept": 1})
    simulated, predicted = launched(tmp_path, program, fabric=SIMULATED)
    assert (real.evidence, slept.evidence, simulated.evidence) == ("measured", "emulated", "simulated")
    assert all(check.passed for record in (real, slept, simulated) for check in record.checks)
    assert {check.name for check in real.checks} == {check.name for check in simulated.checks} != set()
    assert counted(in_processes) == counted(replayed) == counted(predicted)
