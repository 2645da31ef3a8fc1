"""Settings of other people's transports that `make bench` tries: they reach the library, and results stay right (each
launch compares its sums with NumPy's)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from scaleproof.core.record_schema import Record
from scaleproof.launch.supervisor import run_plan
from scaleproof.record.store import Store
from scaleproof.spec.case import parse_case
from scaleproof.spec.plan import PlannedLaunch

PIECE = 4 << 20


def launched(results: Path, transport: dict[str, Any]) -> Record:
    """An all-reduce of one element, of fewer elements than pieces, and of a size that no piece divides."""
    fields = {"program": "collective", "suite": "s", "experiment": "e", "arm": "a", "ranks": 2, "collective": "native"}
    case = parse_case({**fields, "transport": transport, "sizes": [4, 8, 40004], "iterations": 2, "warmup": 0})
    outcome = run_plan([PlannedLaunch(case, 0, 5, 0)], results, size="ci", deadline_s=90)
    record = Store(results).load(outcome.launches[0])[0]
    assert (record.status, record.failure) == ("ok", None)
    assert record.checks and all(check.passed for check in record.checks)
    return record


def test_gloo_splits_an_all_reduce_over_its_devices(tmp_path: Path) -> None:
    record = launched(tmp_path, {"name": "gloo", "devices": 3})
    one = launched(tmp_path, {"name": "gloo"})
    split, whole = (each.transport["traffic"][0] for each in (record, one))
    assert split["messages"] > whole["messages"] and split["nbytes"] == whole["nbytes"]


def test_horovod_gets_the_cycle_of_the_case(tmp_path: Path) -> None:
    record = launched(tmp_path, {"name": "horovod", "cycle_ms": 0.5})
    assert record.ranks[0].facts["horovod"]["HOROVOD_CYCLE_TIME"] == "0.5"


def test_tensorflows_strategy_has_the_piece_size_of_our_own_transport(tmp_path: Path) -> None:
    record = launched(tmp_path, {"name": "tensorflow-mirrored"})
    assert record.ranks[0].facts["tuning"]["recv_buf_max_chunk_bytes"] == PIECE
