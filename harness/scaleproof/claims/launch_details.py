"""What a reader must know of the launches behind a number beside its level of evidence: soft-RoCE, dilation, reduced
networks."""

from __future__ import annotations

from collections.abc import Iterable

from scaleproof.claims.claims_file import Reduction
from scaleproof.claims.metrics import Metric
from scaleproof.core.record_schema import Evidence, Record
from scaleproof.spec.case import TrainCase
from scaleproof.workloads.case_network import work_factor

PREDICTED = "then predicted by a model"
"""Detail of a number that a model makes of launches, about something that was not run."""


def evidence_details(
    records: Iterable[Record], evidence: Evidence | None, metric: Metric | None = None
) -> tuple[str, ...]:
    """The details of the launches at this level of evidence, each combination once (`Record.evidence_details`), and
    whether the metric predicts."""
    of_level = [record for record in records if record.evidence == evidence]
    found = {", ".join(record.evidence_details) for record in of_level if record.evidence_details}
    return (*sorted(found), *([PREDICTED] if metric is not None and metric.predicts else []))


def reductions(records: Iterable[Record], metric: Metric | None) -> tuple[Reduction, ...]:
    """The reduced networks that these launches trained, each once."""
    forward_alone = metric is not None and metric.name == "forward_throughput"
    cases = {
        (case.workload, case.workload_options.image_side, case.workload_options.width): case
        for record in records
        if isinstance(case := record.case, TrainCase)
    }
    found = [
        Reduction(workload=workload, image_side=side, width=width, factor=work_factor(case, forward_alone))
        for (workload, side, width), case in cases.items()
    ]
    return tuple(reduction for reduction in found if reduction.factor != 1)
