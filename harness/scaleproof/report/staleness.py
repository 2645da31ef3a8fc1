"""The section about how stale the gradients are that servers apply: the whole distribution, of which tables have the
median and the tail."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from scaleproof.claims.metrics_replicas import staleness_of_gradients
from scaleproof.report.data import Run
from scaleproof.report.figures.staleness import shares, staleness
from scaleproof.report.figures.style import Look, series_looks
from scaleproof.report.groups import arm, by_arm, by_network_and_level, grouped, heading, training
from scaleproof.report.sections import Panel, Section, legend, section

HOW = (
    "For each arm, the share of all gradients of its launches that were at most so stale when a server applied them: "
    "updates of the server since the worker took the parameters. A line that is steep and far to the left is a server "
    "whose workers have fresh parameters; a bound on staleness ends the line there."
)
COLUMNS = ("experiment", "network", "ranks", "arm", "staleness", "share_at_most")


def staleness_sections(runs: list[Run]) -> list[Section]:
    """One section; none where no server applied a gradient that was stale."""
    stale = [run for run in runs if (run.metric("staleness_p95") or 0) > 0]
    groups, looks = by_network_and_level(stale), _looks(stale)
    panels, rows = list[Panel](), list[tuple[object, ...]]()
    for key, launches in groups.items():
        for ranks, group in sorted(grouped(launches, lambda run: training(run).ranks).items()):
            series = {name: _pooled(of_arm) for name, of_arm in by_arm(group).items()}
            title, name = heading(key, groups), f"{ranks} rank{'s' if ranks > 1 else ''}"
            panels.append(Panel(name, staleness(f"Staleness of gradients, {title}, {name}", series, looks), title))
            rows += [
                (*key, ranks, which, *point)
                for which, values in series.items()
                for point in zip(*(column.tolist() for column in shares(values)), strict=True)
            ]
    if not stale:
        return []
    title, key_of = "How stale gradients are", legend(looks, map(arm, stale))
    metrics = ["staleness", "staleness_p95"]
    made = section("staleness", title, HOW, metrics, panels, key_of, COLUMNS, rows, stale)
    return [replace(made, hollow=False)]  # the heading of each panel has its level of evidence


def _pooled(runs: list[Run]) -> np.ndarray:
    """Of all gradients of these launches."""
    return np.concatenate([staleness_of_gradients(run.record, run.samples) for run in runs if run.record is not None])


def _looks(runs: list[Run]) -> dict[str, Look]:
    return series_looks({arm(run): training(run).transport for run in runs})
