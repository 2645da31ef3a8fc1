"""The sniff test of an allocation's nodes before an experiment: one rank on each node, started like the ranks of the
experiment; at most once an hour."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from scaleproof.core.atomic_write import write_form
from scaleproof.core.node_schema import Sniff, Sniffed, SniffedNode
from scaleproof.core.record_schema import PreflightCheck
from scaleproof.launch.nodes.allocated_nodes import AllocatedNodes, NodePlacement, placement_for
from scaleproof.launch.preflight.machine_preflight import checked
from scaleproof.launch.preflight.rank_preflight import facts_of, no_answer
from scaleproof.launch.preflight.slow_nodes import CODE
from scaleproof.launch.watch.failure_signs import Sign
from scaleproof.paths import PACKAGE
from scaleproof.spec.case import AnyCase, parse_case
from scaleproof.stats.intervals import median, median_interval

VALID = timedelta(hours=1)
FOLDER = "sniffs"
"""Folder in the results: a file for each allocation and set of nodes."""
PROGRAMS = PACKAGE / "calibrate" / "sniffing"
BASE_S, NODE_S = 60.0, 6.0
"""How long the test may take, and what each node adds: nodes that are one machine take turns."""


def sniff_of(allocated: AllocatedNodes, results: Path, staging: Path) -> Sniff | PreflightCheck:
    """Figures of all remaining nodes, stored ones unless they are too old; else a check that says why there are
    none."""
    placement = placement_for(one_rank_each(len(allocated.nodes) - len(allocated.lost)), allocated)
    if placement is None:
        return checked(CODE, None, "the nodes were not tested: one rank does not fit on each of them")
    job = allocated.allocation.job.id if allocated.allocation.job else ""
    names = [node.name for node in placement.nodes]
    path = sniff_file(results, allocated.allocation.cluster, job, names)
    if (stored := read_recent(path)) is not None:
        return stored
    nodes = measured(one_rank_each(len(names)), names, staging, placement)
    if isinstance(nodes, Sign):
        return no_answer(nodes, CODE, "the nodes were not tested: ", None)
    sniff = Sniff(
        cluster=allocated.allocation.cluster, job=job, taken_at=_now().isoformat(timespec="seconds"), nodes=nodes
    )
    write_form(path, sniff)
    return sniff


def one_rank_each(nodes: int, **fields: Any) -> AnyCase:
    """The case of a sniff test of so many nodes."""
    own = {
        "program": "own",
        "suite": "preflight",
        "experiment": "preflight",
        "arm": "sniff",
        "entry": "sniff",
        "ranks": nodes,
    }
    return parse_case({**own, **fields})


def sniff_file(results: Path, cluster: str, job: str, names: Sequence[str]) -> Path:
    """The file of the figures of an allocation and these nodes, in any order."""
    key = hashlib.sha256("\n".join([cluster, job, *sorted(names)]).encode()).hexdigest()[:16]
    return results / FOLDER / f"{key}.json"


def measured(
    case: AnyCase, names: Sequence[str], staging: Path, placement: NodePlacement | None = None
) -> list[SniffedNode] | Sign:
    """Start a rank on each of the named nodes and have it measure; a sign of what failed where they did not answer."""
    facts = facts_of(case, PROGRAMS, BASE_S + NODE_S * len(names), staging, placement)
    if isinstance(facts, Sign):
        return facts
    return [_node(names, rank, facts[rank]["sniff"]) for rank in range(len(names))]


def _node(names: Sequence[str], rank: int, figures: Mapping[str, Any]) -> SniffedNode:
    return SniffedNode(
        name=names[rank],
        boot=figures["boot"],
        cores=figures["cores"],
        copied=_figure(figures["copied"]),
        multiplied=_figure(figures["multiplied"]),
        next=names[(rank + 1) % len(names)] if "rate" in figures else "",
        rate=_figure(figures["rate"]) if "rate" in figures else None,
        trip=_figure(figures["trip"]) if "trip" in figures else None,
    )


def _figure(values: Sequence[float]) -> Sniffed:
    interval = median_interval(values)
    return Sniffed(
        value=median(values),
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        n=len(values),
    )


def read_recent(path: Path) -> Sniff | None:
    """The stored figures; None when the file does not exist, has another form, or is too old."""
    try:
        stored = Sniff.model_validate_json(path.read_bytes())
    except (FileNotFoundError, ValidationError):
        return None
    return stored if timedelta(0) <= _now() - datetime.fromisoformat(stored.taken_at) < VALID else None


def _now() -> datetime:
    return datetime.now(UTC)
