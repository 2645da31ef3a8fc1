"""Imported logs of collectives, as `scaleproof import` keeps them, and the predictions of the model of NCCL for their
calls."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path
from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt

from scaleproof.core.atomic_write import read_form, write_form
from scaleproof.results.collective_logs import CollectiveLog
from scaleproof.simulate.nccl.constants import Algorithm
from scaleproof.simulate.nccl.device_calls import UNCERTAINTY, is_modelled, with_gpus
from scaleproof.simulate.nccl.prediction import Collective, bus_factor, predict
from scaleproof.spec.errors import SpecError
from scaleproof.spec.gpu_node import gpu_nodes
from scaleproof.spec.registry import nearest

FOLDER = "imported"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
GIGA = 1e9


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class KeptCall(_Form):
    """`nbytes`: of the whole array; `busbw`: GB/s as printed, null where the tool prints none."""

    nbytes: PositiveInt
    seconds: PositiveFloat
    busbw: float | None


class KeptLog(_Form):
    """A log, and where it ran. `gpus`: of all nodes; null: not said."""

    tool: str
    collective: Collective
    gpus: int | None
    nodes: PositiveInt
    calls: tuple[KeptCall, ...]
    machine: str = Field(description="A node type of clusters/gpu_nodes.yaml, or the user's own name.")
    algorithm: Algorithm | None = Field(None, description="As NCCL_ALGO was set; null: NCCL chose.")

    @property
    def name(self) -> str:
        """Of its file, without the ending."""
        return ".".join([self.machine, self.collective, f"n{self.nodes}", *filter(None, [self.algorithm])])

    @property
    def all_gpus(self) -> int | None:
        """GPUs that took part: as the log lists them, else all of its nodes; None where neither is known."""
        known = gpu_nodes().get(self.machine)
        return self.gpus or (known.gpus * self.nodes if known else None)

    def busbw(self, call: KeptCall) -> float | None:
        """Of a call in GB/s: as printed, else by its time; None where the number of GPUs is not known."""
        if call.busbw is not None or self.all_gpus is None:
            return call.busbw
        return call.nbytes / call.seconds / GIGA * bus_factor(self.collective, self.all_gpus)


class PredictedCall(_Form):
    """What the model of NCCL says of a call, and the bounds of what suite gpu_collectives accepts, as busbw in GB/s."""

    seconds: float
    busbw: float
    low: float
    high: float
    algorithm: str
    protocol: str


def kept_log(log: CollectiveLog, machine: str, nodes: int | None, algorithm: str | None) -> KeptLog:
    """A log with where it ran. Raises SpecError, one line, for a machine, nodes or an algorithm that cannot be."""
    if not NAME.fullmatch(machine):
        raise SpecError(f"--machine {machine!r}: write letters, digits, '.', '_' and '-'")
    if nodes is not None and nodes < 1:
        raise SpecError(f"--nodes {nodes}: give at least one")
    if algorithm not in (None, *get_args(Algorithm)):
        raise SpecError(f"--algorithm: unknown {algorithm!r}; {nearest(str(algorithm), list(get_args(Algorithm)))}")
    fields = asdict(log) | {"machine": machine, "nodes": nodes or log.nodes or 1, "algorithm": algorithm}
    kept = KeptLog.model_validate(fields)
    known, gpus = gpu_nodes().get(machine), kept.gpus
    if known is not None and gpus is not None and (gpus % kept.nodes or gpus > known.gpus * kept.nodes):
        raise SpecError(
            f"the log has {gpus} GPUs on {kept.nodes} node{'s' if kept.nodes > 1 else ''}, and {machine} has "
            f"{known.gpus} each: give --nodes"
        )
    return kept


def keep(log: KeptLog, results: Path) -> Path:
    """Keeps it in place of an earlier one of the same machine, collective, nodes and algorithm; returns its file."""
    return write_form(results / FOLDER / f"{log.name}.json", log)


def kept_logs(results: Path) -> tuple[KeptLog, ...]:
    """All kept logs, by file name. Raises SpecError for a file that is none."""
    logs = (
        read_form(path, KeptLog, "import the log again (scaleproof import)")
        for path in sorted((results / FOLDER).glob("[!.]*.json"))
    )
    return tuple(log for log in logs if log is not None)


def predicted_call(
    machine: str,
    collective: Collective,
    nodes: int,
    nbytes: int,
    algorithm: Algorithm | None = None,
    gpus: int | None = None,
) -> PredictedCall | None:
    """One call over all GPUs of the nodes, or over `gpus` of them; None for a machine that the model does not know, and
    for one GPU, which exchanges nothing. Raises SpecError for a call that NCCL cannot make there."""
    if not is_modelled(machine) or gpus == 1:
        return None
    node = gpu_nodes()[machine]
    if gpus is not None:
        node = with_gpus(machine, node, gpus // nodes)
    way, count = predict(node, collective, nodes, nbytes, algorithm), node.gpus * nodes
    bounds = UNCERTAINTY.large if nbytes >= UNCERTAINTY.large_nbytes else UNCERTAINTY.small
    busbw = way.busbw(collective, count)
    assert bounds.low is not None and bounds.high is not None
    return PredictedCall(
        seconds=way.seconds,
        busbw=busbw,
        low=busbw / bounds.high,
        high=busbw / bounds.low,
        algorithm=way.algorithm,
        protocol=way.protocol,
    )
