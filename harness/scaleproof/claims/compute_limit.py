"""What predicted trainings cannot exceed: the rate at which their ranks compute. The interval of a prediction ends
there, since no draw of its inputs can lie beyond."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from scaleproof.core.record_schema import Record
from scaleproof.spec.case import TrainCase

THROUGHPUT = "throughput"
"""The metric that computing limits."""
Predictions = Sequence[tuple[Record, float]]
"""Records with the metric's value in each."""


def most_throughput(record: Record) -> float | None:
    """Samples per second of a predicted training whose ranks compute and wait for nothing. None where its compute is
    uncertain itself (measured, varying, on nodes of several types), and for what is no predicted training."""
    case, prediction = record.case, record.transport.get("prediction") or {}
    profile = prediction.get("profile")
    if record.evidence != "simulated" or not isinstance(case, TrainCase) or not profile or not profile["step_s"]:
        return None
    if profile["measured_at"] or prediction.get("jitter") or prediction.get("relative_times"):
        return None
    return None if case.plugin("strategy").divides_layers else case.minibatch / float(profile["step_s"])


def limit_of(metric: str, records: Iterable[Record]) -> float | None:
    """The most that a metric can be over these predictions; None where one of them has no limit."""
    limits = [most_throughput(record) if metric == THROUGHPUT else None for record in records]
    known = [limit for limit in limits if limit is not None]
    return max(known) if limits and len(known) == len(limits) else None


def limit_of_ratio(metric: str, above: Predictions, below: Predictions) -> float | None:
    """The same of a ratio of the metric; None where the base is uncertain."""
    base = {value for _, value in below}
    most = limit_of(metric, (record for record, _ in above))
    return most / base.pop() if most is not None and len(base) == 1 and 0 not in base else None
