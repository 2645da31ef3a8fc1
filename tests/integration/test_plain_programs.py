"""Programs whose case says `buffers: plain`: they run on memory that NumPy allocates, and give the same results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch  # noqa: F401  imported before the ranks are forked, as their parent does

from scaleproof.core.context import RankContext
from scaleproof.core.recorder import read_events
from scaleproof.programs import collective, transfer
from scaleproof.rank.unsupervised_ranks import run_ranks
from scaleproof.transports.shm import private_memory
from tests.integration._training import case_of, launch
from tests.short_form import case_from, ring_case

MIB = 1 << 20


@pytest.mark.parametrize("program", [collective, transfer])
@pytest.mark.parametrize("buffers", ["registered", "plain"])
def test_a_program_uses_the_buffers_of_its_case(buffers: str, program: Any) -> None:
    """Over shm the kernel copies large plain buffers, and never registered ones."""
    large = max(private_memory.LEAST_NBYTES.values())
    fields = {"program": program.PLUGIN.name, "sizes": [8, large], "iterations": 2, "warmup": 0}

    def body(context: RankContext) -> None:
        program.run(context)
        assert all(check["passed"] for check in context.checks)
        assert (context.facts["plain_buffers"]["copied"]["nbytes"] > 0) == (buffers == "plain")

    case = case_from(ring_case("shm").written() | fields | {"buffers": buffers})
    assert run_ranks(case, body) == ["", ""]


@pytest.mark.parametrize("strategy", ["sync", "sync_overlap", "distributed_update"])
def test_training_exchanges_plain_gradients(strategy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To the last bit as registered ones, where every bucket is copied by the kernel."""
    monkeypatch.setattr(private_memory, "LEAST_NBYTES", dict.fromkeys(private_memory.LEAST_NBYTES, 1))
    fields = {"ranks": 2, "transport": "shm", "collective": "ring", "strategy": strategy, "steps": 4}
    outcomes = [launch(tmp_path / way, case_of(**fields, buffers=way)) for way in ("registered", "plain")]
    assert [outcome.failed_checks for outcome in outcomes] == [[], []]
    assert outcomes[0].parameters.size
    assert np.array_equal(outcomes[0].parameters, outcomes[1].parameters)


@pytest.mark.parametrize("operation", ["all_reduce", "broadcast"])
def test_a_traced_launch_on_plain_buffers_records_every_access(operation: str) -> None:
    fields: dict[str, Any] = {
        "sizes": [2 * MIB],
        "iterations": 3,
        "warmup": 1,
        "tracing": "full",
        "operation": operation,
    }

    def body(context: RankContext) -> None:
        collective.run(context)
        rows = read_events(context.recorder.path)
        moved = rows[np.isin(rows["event"], (b"reduce", b"pull", b"push")) & ~rows["warmup"]]
        everyone = sum(context.rendezvous.exchange("moved", context.rank, 2, int(moved["nbytes"].sum())))
        assert everyone == 3 * 2 * MIB * (2 if operation == "all_reduce" else 1)

    assert run_ranks(ring_case("shm", buffers="plain", **fields), body, 30) == ["", ""]
