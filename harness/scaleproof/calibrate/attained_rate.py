"""The rate of a finished launch beside what its machine was measured to reach, for `scaleproof show` and its page."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

    from scaleproof.core.record_schema import Record
    from scaleproof.record.machine import MachineProfile


def rate_lines(record: Record, samples: pd.DataFrame, profile: MachineProfile | None) -> list[str]:
    """A training's throughput, or the highest rate over the message sizes of a sweep, and its share of the measured
    bound; empty for a launch without such a rate."""
    from scaleproof.calibrate.attainable import LINK, NoBound, attainable
    from scaleproof.claims.metrics import METRICS
    from scaleproof.spec.case import CollectiveCase, TrainCase, TransferCase
    from scaleproof.spec.units import format_bytes

    names = {TrainCase: "throughput", CollectiveCase: "algbw", TransferCase: "transfer_bandwidth"}
    name = next((name for form, name in names.items() if isinstance(record.case, form)), None)
    if name is None:
        return []
    metric = METRICS[name]
    values: dict[int | None, float] = {
        nbytes: value for nbytes, value in metric.by_size(record, samples).items() if value
    }
    if metric.launch is not None and (rate := metric.launch(record, samples)):
        values[None] = rate
    if not values:
        return []
    nbytes, value = max(values.items(), key=lambda item: item[1])
    size = "" if nbytes is None else f" at {format_bytes(nbytes)}"
    size += f", the highest of {len(values)} sizes" if len(values) > 1 else ""
    line = f"{name}: {value:.4g} {metric.unit}{size}"
    attained = attainable(record, metric, value, profile, nbytes)
    assert attained is not None, "all three are rates"
    if isinstance(attained, NoBound):
        return [f"{line}; no bound: {attained.why} (docs/calibration.md)"]
    ends = "" if attained.low is None or attained.high is None else f" [{attained.low:.4g}, {attained.high:.4g}]"
    above = ", above its interval" if attained.above else ""
    limit = f"{attained.limit:.4g}{ends} {metric.unit} ({attained.name})"
    origin = "set on its links" if attained.name == LINK else f"measured on machine {record.machine}"
    return [f"{line}; {100 * attained.share:.3g} % of the bound {origin}{above}: {limit}"]
