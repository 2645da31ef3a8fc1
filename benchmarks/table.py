"""Turns samples into bench.json and bench.md: rates beside the bound, and ratios with intervals against the targets."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.arms import BOUND, RING_OVER_GRPC, SIZES, Arm
from benchmarks.interleaved import Measured, median_rate
from scaleproof.record.digest import code_digest
from scaleproof.record.environment import environment
from scaleproof.spec.units import format_bytes
from scaleproof.stats.bootstrap import ratio, ratio_interval

SCHEMA_VERSION = 1
MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Target:
    """Two arms at one size, and the ratio of their rates that the first must reach."""

    arm: Arm
    size: int
    against: Arm
    factor: float


def _two(name: str) -> Arm:
    return Arm(name, 2, "all_reduce")


TARGETS = (
    Target(_two("shm"), 64 * MIB, _two("gloo"), 4),
    Target(_two("shm"), 64 * MIB, _two("mpi"), 3),
    Target(_two("shm"), 64 * MIB, _two(BOUND), 0.75),
    Target(_two("shm"), MIB, _two("gloo"), 5),
    Target(_two("tcp"), 64 * MIB, _two("gloo"), 1.2),
    Target(_two("grpc"), 64 * MIB, _two(RING_OVER_GRPC), 1),
)


def summary(measured: Measured, recording: dict[str, Any]) -> dict[str, Any]:
    """The content of bench.json."""
    machine = environment(dict(os.environ))
    return {
        "schema_version": SCHEMA_VERSION,
        "date": datetime.now(UTC).date().isoformat(),
        "code": code_digest(),
        "machine": {
            key: machine[key]
            for key in (
                "cpu",
                "cores",
                "memory_mib",
                "kernel",
                "python",
                "congestion_control",
                "transparent_huge_pages",
            )
        },
        "launches": measured.launches,
        "seed": measured.seed,
        "rates": [row for arm in _order(measured) for row in _rates(measured, arm)],
        "targets": [_target(measured, target) for target in TARGETS],
        "missing": [
            {"arm": arm.name, "ranks": arm.ranks, "operation": arm.operation, "why": why}
            for arm, reasons in measured.missing.items()
            for why in reasons
        ],
        "recording": recording,
    }


def write(result: dict[str, Any], folder: Path) -> None:
    """Write bench.json and bench.md."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "bench.json").write_text(json.dumps(result, indent=1) + "\n")
    (folder / "bench.md").write_text(markdown(result))


def markdown(result: dict[str, Any]) -> str:
    """The tables for the docs and the README."""
    machine = result["machine"]
    lines = [
        f"Measured on {result['date']}: {machine['cpu']}, {machine['cores']} cores, "
        f"{machine['memory_mib'] / 1024:.0f} GiB, Linux {machine['kernel']}, "
        f"Python {machine['python']}. Medians over {result['launches']} launches of an arm, "
        "all arms in one interleaved run; GB/s.",
        "",
        *(line for operation, title in TITLES.items() for line in _table(result, operation, title)),
        "| target | ratio | 95 % interval | wanted | |",
        "|---|---|---|---|---|",
        *(_target_line(target) for target in result["targets"]),
        "",
        *(
            f"Not measured: {name}: {why}."
            for name, why in dict.fromkeys((row["arm"], row["why"]) for row in result["missing"])
        ),
        *_recording_lines(result["recording"]),
    ]
    return "\n".join(lines) + "\n"


TITLES = {"all_reduce": "all-reduce, algbw", "transfer": "transfer, one way", "copy": "one process copies, nobody else"}


def _order(measured: Measured) -> list[Arm]:
    names = list(dict.fromkeys([BOUND, *(arm.name for arm in sorted(measured.samples, key=lambda arm: arm.name))]))
    return sorted(
        measured.samples, key=lambda arm: (list(TITLES).index(arm.operation), arm.ranks, names.index(arm.name))
    )


def _rates(measured: Measured, arm: Arm) -> Iterator[dict[str, Any]]:
    gloo = Arm("gloo", arm.ranks, arm.operation)
    for size in SIZES:
        seconds, theirs = measured.seconds(arm, size), measured.seconds(gloo, size)
        yield {
            "arm": arm.name,
            "ranks": arm.ranks,
            "operation": arm.operation,
            "nbytes": size,
            "launches": len(seconds),
            "seconds": seconds,
            "bytes_per_second": median_rate(seconds, size),
            "times_gloo": ratio(theirs, seconds) if theirs else None,
        }


def _target(measured: Measured, target: Target) -> dict[str, Any]:
    ours, theirs = measured.seconds(target.arm, target.size), measured.seconds(target.against, target.size)
    row = {
        "arm": target.arm.name,
        "against": target.against.name,
        "nbytes": target.size,
        "ranks": target.arm.ranks,
        "wanted": target.factor,
    }
    if not ours or not theirs:
        return {**row, "ratio": None, "low": None, "high": None, "met": None}
    interval, reached = ratio_interval(theirs, ours), ratio(theirs, ours)
    return {
        **row,
        "ratio": reached,
        "low": interval and interval.low,
        "high": interval and interval.high,
        "met": reached >= target.factor,
    }


def _table(result: dict[str, Any], operation: str, title: str) -> Iterator[str]:
    rows = [row for row in result["rates"] if row["operation"] == operation]
    if not rows:
        return
    yield f"| {title} | ranks | " + " | ".join(format_bytes(size) for size in SIZES) + " | times Gloo at the largest |"
    yield "|---" * (len(SIZES) + 3) + "|"
    for arm in dict.fromkeys((row["arm"], row["ranks"]) for row in rows):
        mine = {row["nbytes"]: row for row in rows if (row["arm"], row["ranks"]) == arm}
        times = mine[SIZES[-1]]["times_gloo"]
        cells = [f"{mine[size]['bytes_per_second'] / 1e9:.3g}" for size in SIZES]
        yield f"| {arm[0]} | {arm[1]} | " + " | ".join(cells) + f" | {'' if times is None else f'{times:.2f}'} |"
    yield ""


def _target_line(target: dict[str, Any]) -> str:
    description = (
        f"{target['arm']} against {target['against']}, {format_bytes(target['nbytes'])}, {target['ranks']} ranks"
    )
    if target["ratio"] is None:
        return f"| {description} | not measured | | {target['wanted']:g} | |"
    interval = "needs 6 launches" if target["low"] is None else f"{target['low']:.2f} to {target['high']:.2f}"
    outcome = "met" if target["met"] else "missed"
    return f"| {description} | {target['ratio']:.2f} | {interval} | {target['wanted']:g} | {outcome} |"


def _recording_lines(recording: dict[str, Any]) -> list[str]:
    if not recording:
        return []
    return [
        f"Recording: {recording['event_us']:.2f} us an event, "
        f"{recording['events_per_step']:g} events a step of {recording['step_ms']:.1f} ms: "
        f"{100 * recording['share']:.3f} % of a step. "
        f"With and without recording, in turns: ratio {recording['ab_ratio']:.4f} "
        f"({recording['ab_low']:.4f} to {recording['ab_high']:.4f}); "
        f"noise floor from the same without any difference: {recording['aa_low']:.4f} to "
        f"{recording['aa_high']:.4f}."
    ]
