"""Simulates a suite's own program, where that is a rank program: the prediction's samples and checks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from scaleproof.core.missing_input import MissingInput
from scaleproof.core.record_schema import SAMPLES
from scaleproof.programs.own import load_entry
from scaleproof.rank_programs.rank_program import RankProgram
from scaleproof.simulate.buffered import buffered_nbytes
from scaleproof.simulate.cost_model import MessageCosts
from scaleproof.simulate.link_network import Network
from scaleproof.simulate.virtual_run import Happened, VirtualRun
from scaleproof.spec.case import OwnCase
from scaleproof.spec.cluster import Cluster, slowed

SECOND = 1e9


def program_of(case: OwnCase, programs: str) -> type[RankProgram]:
    """The rank program of a case. Raises SpecError for a program that only processes can run."""
    form: type[RankProgram] | None = getattr(load_entry(Path(programs), case.entry), "PROGRAM", None)
    if form is None:
        raise MissingInput(
            f"programs/{case.entry}.py has a function `run`, which only processes can call",
            "write it as a rank program (docs/programs.md)",
        )
    return form


def simulate_program(
    case: OwnCase, form: type[RankProgram], cluster: Cluster, costs: MessageCosts, seed: int = 0
) -> tuple[pa.Table, list[dict[str, Any]]]:
    """The samples of a record, in true time, and the checks of all ranks."""
    network = Network(slowed(cluster, case.dilation, case.shrink), costs.goodput)
    nodes = [rank * case.nodes // case.ranks for rank in range(case.ranks)]
    run = VirtualRun(form, case, network, nodes, costs, buffered_nbytes(case), seed)
    run.run()
    checks = [
        {"rank": rank, "name": name, "passed": bool(passed), "detail": detail}
        for rank, name, passed, detail in run.checks()
    ]
    return samples(run.events, case.dilation), checks


def samples(events: list[Happened], dilation: float) -> pa.Table:
    """Rows of a record."""

    def moments(times: list[float]) -> np.ndarray:
        return np.rint(np.array(times) / dilation * SECOND).astype(np.int64)

    columns = {
        "rank": [event.rank for event in events],
        "event": [event.event for event in events],
        "step": [event.step for event in events],
        "warmup": [event.warmup for event in events],
        "start_ns": moments([event.start for event in events]),
        "end_ns": moments([event.end for event in events]),
        "nbytes": [event.nbytes for event in events],
        "value": [event.value for event in events],
    }
    table = pa.table({name: columns[name] for name in SAMPLES.names}).cast(SAMPLES)
    return table.sort_by([("rank", "ascending"), ("start_ns", "ascending")])
