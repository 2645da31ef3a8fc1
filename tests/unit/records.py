"""Records made up for tests."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from scaleproof.core.node_schema import Job, PlacedNode, Placement
from scaleproof.core.record_schema import Code, Failure, Record
from scaleproof.core.recorder import EVENT_DTYPE
from scaleproof.record.store import Store
from scaleproof.record.write import samples_table
from tests.short_form import ring_case


def case(**fields: Any) -> Any:
    return ring_case(**{"transport": "shm", **fields})


def record(launch: str = "aa", **fields: Any) -> Record:
    base: dict[str, Any] = {
        "launch": launch,
        "case_id": case().case_id,
        "case": case(),
        "size": "ci",
        "plan_index": 0,
        "seed": 1,
        "evidence": "measured",
        "oversubscribed": False,
        "status": "ok",
        "failure": None,
        "ranks": [],
        "checks": [],
        "warnings": [],
        "code": Code(version="0", commit=None, dirty=None, digest="d"),
        "machine": "m",
        "environment": {},
        "transport": {},
        "started_at": "2026-01-01T00:00:00",
        "wall_s": 1.0,
        "command": [],
    }
    return Record(**(base | fields))


def failure(code: Any = "rank_killed") -> Failure:
    return Failure(code=code, rank=1, message="m", step=3, operation="o", advice="a")


def events(count: int) -> np.ndarray:
    rows = np.zeros(count, EVENT_DTYPE)
    rows["event"], rows["end_ns"], rows["step"] = b"step", 1, np.arange(count)
    return rows


def commit(results: Path, launch: Record, rows: int = 3) -> Path:
    store = Store(results)
    staging = store.staging / launch.launch
    staging.mkdir(parents=True)
    (staging / "rank-0.log").write_text("log")
    return store.commit(staging, launch, samples_table({0: events(rows), 1: events(rows)}))


def placed(
    *nodes: str, switches: Mapping[str, str] | None = None, ranks: int = 2, cluster: str = "c", machine: str = "m"
) -> Placement:
    """Nodes of one allocation; rank r stands on node r * nodes // ranks. `switches`: node to switch."""
    of = {
        node: [rank for rank in range(ranks) if rank * len(nodes) // ranks == index] for index, node in enumerate(nodes)
    }
    made = [
        PlacedNode(
            name=node,
            address="10.0.0.1",
            switch=(switches or {}).get(node, ""),
            machine=machine,
            boot=f"b-{node}",
            cores=4,
            ranks=of[node],
        )
        for node in nodes
    ]
    job = Job(id="17", partition="batch", restarts=0)
    return Placement(
        launcher="srun", kind="slurm", cluster=cluster, job=job, interface="eth0", streamed=False, nodes=made
    )
