"""Collectives between GPUs: public logs of a suite's rows, the user's own imported logs, and what the model of NCCL
predicts, in one table and one figure for each machine and operation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, get_args

from scaleproof.claims.claim_form import PublishedRow
from scaleproof.claims.claims_yaml import load_published
from scaleproof.report.data import SuiteData, anchor
from scaleproof.report.figures.logged import IMPORTED, PREDICTED, LoggedPoint, PredictedPoint, logged
from scaleproof.report.figures.style import LegendEntry, key_mark
from scaleproof.report.level_marks import public_mark
from scaleproof.report.numbers import bracket, nbytes, significant
from scaleproof.report.sections import Cell, Panel, Row, Section, Table, section
from scaleproof.results.imported_logs import KeptLog, PredictedCall, predicted_call
from scaleproof.simulate.nccl.constants import Algorithm
from scaleproof.simulate.nccl.device_calls import is_modelled
from scaleproof.simulate.nccl.prediction import Collective, bus_factor
from scaleproof.spec.errors import SpecError
from scaleproof.spec.gpu_node import gpu_nodes

HOW = (
    "Bus bandwidth as nccl-tests counts it: bytes of the array over time, times 2 (n - 1) / n for an all-reduce over n "
    "GPUs. Predictions are arithmetic; nothing in them is fitted to a log. The band is what the suite accepts: a "
    "factor of 2, and 40 % from 64 MiB on."
)
IMPORT = " A log of yours comes into the same table and figures by: scaleproof import nccl-tests FILE --machine NAME."
TITLE, ID = "Logs beside predictions", "gpu-logs"
METRICS = ["nccl_busbw", "nccl_time"]
COLUMNS = ("machine", "nodes", "collective", "algorithm", "source", "nbytes", "busbw_gbs", "low_gbs", "high_gbs", "id")
GIGA, MICRO = 1e9, 1e-6
GRID = 4
"""Sizes of a predicted line grow by this factor, between those of the logs."""


class Operation(NamedTuple):
    """What a figure shows; `gpus`: those that took part, None for all of the nodes'."""

    machine: str
    nodes: int
    collective: Collective
    algorithm: Algorithm | None
    gpus: int | None

    @property
    def title(self) -> str:
        """The operation without its machine."""
        where = f"{self.nodes} node{'s' if self.nodes > 1 else ''}" + (f", {self.gpus} GPUs" if self.gpus else "")
        return f"{self.collective}, {where}" + (f", algorithm {self.algorithm}" if self.algorithm else "")

    def predicted(self, size: int) -> PredictedCall | None:
        """The call of so many bytes; None where the model does not know the machine, or it cannot make the call."""
        try:
            return predicted_call(self.machine, self.collective, self.nodes, size, self.algorithm, self.gpus)
        except SpecError:
            return None


@dataclass(frozen=True, slots=True)
class Logs:
    """The points of an operation by size."""

    public: dict[int, LoggedPoint] = field(default_factory=dict)
    imported: dict[int, LoggedPoint] = field(default_factory=dict)

    @property
    def sizes(self) -> list[int]:
        """Sizes of both, ascending."""
        return sorted(self.public.keys() | self.imported.keys())


def sections(data: SuiteData) -> list[Section]:
    """One section for a suite whose rows are logs of collectives on node types with GPUs."""
    rows = [row for row in load_published(data.suite.folder).values() if _is_logged(row)]
    if not rows:
        return []
    operations: dict[Operation, Logs] = {}
    for row in rows:
        _add_row(operations, row)
    for log in data.imported:
        _add_log(operations, log)
    operations = _by_machine(operations)
    panels = [_panel(operation, logs) for operation, logs in operations.items()]
    how = HOW if data.imported else HOW + IMPORT
    table = _table(operations, bool(data.imported))
    return [section(ID, TITLE, how, METRICS, panels, _key(rows, data), COLUMNS, _csv(operations), [], [table])]


def _by_machine(operations: dict[Operation, Logs]) -> dict[Operation, Logs]:
    """Operations of a machine together, machines in the order of their first appearance; a log whose tool prints times
    only, of nobody knows how many GPUs, has no bandwidth and is left out."""
    machines = list(dict.fromkeys(operation.machine for operation in operations))
    ordered = sorted(operations.items(), key=lambda item: machines.index(item[0].machine))
    return {operation: logs for operation, logs in ordered if logs.sizes}


def _is_logged(row: PublishedRow) -> bool:
    x = row.x
    known = is_modelled(x.get("machine")) and x.get("collective") in get_args(Collective)
    return known and isinstance(x.get("bytes"), int) and isinstance(x.get("nodes"), int) and row.value is not None


def _add_row(operations: dict[Operation, Logs], row: PublishedRow) -> None:
    algorithm: Algorithm | None = "ring" if str(row.x.get("algorithm", "")).lower().startswith("ring") else None
    operation = Operation(row.x["machine"], row.x["nodes"], row.x["collective"], algorithm, None)
    size, value = row.x["bytes"], float(row.value or 0.0)
    if row.unit == "us":
        gpus = gpu_nodes()[operation.machine].gpus * operation.nodes
        value = size / (value * MICRO) / GIGA * bus_factor(operation.collective, gpus)
    tooltip = f"{row.id}: {nbytes(size)}, {significant(value)} GB/s"
    operations.setdefault(operation, Logs()).public[size] = LoggedPoint(
        size, value, tooltip, f"#claim-{anchor(row.id)}", not row.gate
    )


def _add_log(operations: dict[Operation, Logs], log: KeptLog) -> None:
    known = gpu_nodes().get(log.machine)
    is_whole = known is not None and log.all_gpus == known.gpus * log.nodes
    operation = Operation(log.machine, log.nodes, log.collective, log.algorithm, None if is_whole else log.gpus)
    logs = operations.setdefault(operation, Logs())
    for call in log.calls:
        busbw = log.busbw(call)
        if busbw is not None:
            tooltip = f"imported, {log.name}: {nbytes(call.nbytes)}, {significant(busbw)} GB/s"
            logs.imported[call.nbytes] = LoggedPoint(call.nbytes, busbw, tooltip)


def _panel(operation: Operation, logs: Logs) -> Panel:
    label = (
        f"Bus bandwidth over the size of the array, {operation.machine}, {operation.title}: a predicted line with its "
        "band, and marks of logs."
    )
    picture = logged(label, _line(operation, logs.sizes), list(logs.public.values()), list(logs.imported.values()))
    known = gpu_nodes().get(operation.machine)
    group = f"{operation.machine}: {known.summary}" if known else f"{operation.machine}: no node type that is known"
    return Panel(operation.title, picture, group)


def _line(operation: Operation, sizes: Sequence[int]) -> list[PredictedPoint]:
    """The prediction at the sizes of the logs, between them, and a step to each side: one size has a line too."""
    between, size = [], max(min(sizes) // GRID, 1)
    while size <= max(sizes) * GRID:
        between.append(size)
        size *= GRID
    called = {size: operation.predicted(size) for size in sorted({*sizes, *between})}
    return [PredictedPoint(size, call.busbw, call.low, call.high) for size, call in called.items() if call]


def _table(operations: dict[Operation, Logs], with_imported: bool) -> Table:
    columns = ["size", "public log (GB/s) ↑", "predicted (GB/s) ↑", "algorithm, protocol", "predicted / public log"]
    if with_imported:
        columns = [*columns[:2], "imported (GB/s) ↑", *columns[2:], "predicted / imported"]
    rows = [
        Row(f"{operation.machine}, {operation.title}", _cells(operation, logs, size, with_imported))
        for operation, logs in operations.items()
        for size in logs.sizes
    ]
    return Table("Bus bandwidth: logs, and what the model of NCCL predicts with the bounds of its band", columns, rows)


def _cells(operation: Operation, logs: Logs, size: int, with_imported: bool) -> list[Cell]:
    call, public, imported = operation.predicted(size), logs.public.get(size), logs.imported.get(size)
    predicted, way = Cell("–"), Cell("–")
    if call is not None:
        predicted = Cell(significant(call.busbw), bracket(call.low, call.high))
        way = Cell(f"{call.algorithm}, {call.protocol}")
    cells = [Cell(nbytes(size)), _logged_cell(public), predicted, way, _ratio_cell(call, public)]
    if with_imported:
        cells = [*cells[:2], _logged_cell(imported), *cells[2:], _ratio_cell(call, imported)]
    return cells


def _logged_cell(point: LoggedPoint | None) -> Cell:
    return Cell("–" if point is None else significant(point.busbw))


def _ratio_cell(call: PredictedCall | None, point: LoggedPoint | None) -> Cell:
    known = call is not None and point is not None and point.busbw > 0
    return Cell(significant(call.busbw / point.busbw) if known and call and point else "–")


def _key(rows: Sequence[PublishedRow], data: SuiteData) -> list[LegendEntry]:
    entries = [LegendEntry(key_mark(PREDICTED), "predicted, with the band that the suite accepts"), public_mark()]
    if any(not row.gate for row in rows):
        entries.append(public_mark(judged=False))
    return entries + ([LegendEntry(key_mark(IMPORTED), "imported log")] if data.imported else [])


def _csv(operations: dict[Operation, Logs]) -> Iterable[Sequence[Any]]:
    for operation, logs in operations.items():
        known = (operation.machine, operation.nodes, operation.collective, operation.algorithm)
        for size in logs.sizes:
            if size in logs.public:
                id = logs.public[size].tooltip.partition(":")[0]
                yield (*known, "public log", size, logs.public[size].busbw, None, None, id)
            if size in logs.imported:
                yield (*known, "imported", size, logs.imported[size].busbw, None, None, None)
            if (call := operation.predicted(size)) is not None:
                yield (*known, "predicted", size, call.busbw, call.low, call.high, None)
