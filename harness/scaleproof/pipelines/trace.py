"""A schedule as a trace in Chrome's format, which ui.perfetto.dev opens: a row for each worker."""

from __future__ import annotations

from typing import Any

from scaleproof.pipelines.timing import Timeline

FORWARD_US = 1000.0
"""What a forward pass of one micro-batch takes in the trace, us: the format has no time without a unit."""


def chrome_trace(line: Timeline) -> dict[str, Any]:
    """Complete events with micro-batches and stage, and the workers' names."""
    events: list[dict[str, Any]] = []
    for worker, (order, spans) in enumerate(zip(line.schedule.orders, line.spans, strict=True)):
        name = {"name": f"worker {worker}"}
        events.append({"ph": "M", "name": "thread_name", "pid": 0, "tid": worker, "args": name})
        for each, (start, end) in zip(order, spans, strict=True):
            numbers = ",".join(map(str, each.units))
            events.append(
                {
                    "ph": "X",
                    "name": f"{each.direction} {numbers}",
                    "cat": each.direction,
                    "pid": 0,
                    "tid": worker,
                    "ts": start * FORWARD_US,
                    "dur": (end - start) * FORWARD_US,
                    "args": {"units": list(each.units), "stage": each.stage, "pipeline": each.pipeline},
                }
            )
    return {"traceEvents": events, "displayTimeUnit": "ms"}
