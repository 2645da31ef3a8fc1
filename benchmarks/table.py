"""Turns samples into bench.json and bench.md: rates beside the bound, and ratios with intervals against the targets."""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks import network
from benchmarks.arms import BOUND, SIZES, Arm
from benchmarks.interleaved import Measured, rate, settings_tried
from benchmarks.targets import TARGETS, above_bound, of_bound, target_row
from benchmarks.tuning import TUNED_RANKS, untuned
from scaleproof.record.digest import code_digest
from scaleproof.record.environment import environment
from scaleproof.spec.units import format_bytes
from scaleproof.stats.bootstrap import ratio

SCHEMA_VERSION = 4
"""1: bounds were medians, peers ran as shipped, and a target was met by its ratio alone. 2: no share of a bound, and
none for transfers between registered buffers; `times_gloo` with every number of ranks. 3: no `network`; our sockets had
another congestion control than those of peers, and a setting in use was measured with its own sizes alone."""


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
        "network": network.facts(),
        "launches": measured.launches,
        "seed": measured.seed,
        "rates": [row for arm in _order(measured) for row in _rates(measured, arm)],
        "targets": [target_row(measured, target) for target in TARGETS],
        "impossible": [why for arm in _order(measured) for size in SIZES if (why := above_bound(measured, arm, size))],
        "settings_tried": settings_tried(measured.trials, measured.used),
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
        "all arms in one interleaved run; of the bound the fastest repetition. "
        f"GB/s, in brackets the share of the bound. {network.statement(result['network'])}",
        "",
        *(line for operation, title in TITLES.items() for line in _table(result, operation, title)),
        "| target | ratio | 95 % interval | wanted | |",
        "|---|---|---|---|---|",
        *(_target_line(target) for target in result["targets"]),
        "",
        *(f"{why}." for why in result["impossible"]),
        *_setting_lines(result),
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
            "bytes_per_second": rate(measured, arm, size),
            "of_bound": of_bound(measured, arm, size),
            "setting": measured.setting(arm, size),
            "times_gloo": ratio(theirs, seconds) if theirs and arm.ranks == TUNED_RANKS else None,
        }


def _table(result: dict[str, Any], operation: str, title: str) -> Iterator[str]:
    rows = [row for row in result["rates"] if row["operation"] == operation]
    if not rows:
        return
    yield f"| {title} | ranks | {_sizes_header()} | times Gloo at the largest |"
    yield "|---" * (len(SIZES) + 3) + "|"
    for arm in dict.fromkeys((str(row["arm"]), int(row["ranks"])) for row in rows):
        mine = {row["nbytes"]: row for row in rows if (row["arm"], row["ranks"]) == arm}
        times = mine[SIZES[-1]]["times_gloo"]
        cells = [_rate_cell(mine[size]) for size in SIZES]
        name = f"{arm[0]}, as shipped" if untuned(Arm(*arm, operation)) else arm[0]
        yield f"| {name} | {arm[1]} | " + " | ".join(cells) + f" | {'' if times is None else f'{times:.2f}'} |"
    yield ""


def _rate_cell(row: dict[str, Any]) -> str:
    text = f"{row['bytes_per_second'] / 1e9:.3g}"
    return text if row["of_bound"] is None else f"{text} ({row['of_bound']:.2g})"


def _target_line(target: dict[str, Any]) -> str:
    description = (
        f"{target['arm']} against {target['against']}, {format_bytes(target['nbytes'])}, {target['ranks']} ranks"
    )
    if target["ratio"] is None:
        return f"| {description} | | | {target['wanted']:g} | {target['outcome']} |"
    interval = "needs 6 launches" if target["low"] is None else f"{target['low']:.2f} to {target['high']:.2f}"
    return f"| {description} | {target['ratio']:.2f} | {interval} | {target['wanted']:g} | {target['outcome']} |"


def _setting_lines(result: dict[str, Any]) -> Iterator[str]:
    """The settings that were tried for each peer with their median rates, those in use in bold."""
    tried = result["settings_tried"]
    if not tried:
        yield "No setting of a peer was tried: each ran with the first of its grid."
        return
    yield f"| settings tried, {TITLES['all_reduce']} or {TITLES['transfer']} | ranks | setting | {_sizes_header()} |"
    yield "|---" * (len(SIZES) + 3) + "|"
    for key in dict.fromkeys((row["arm"], row["operation"], row["ranks"], row["setting"]) for row in tried):
        rows = [row for row in tried if (row["arm"], row["operation"], row["ranks"], row["setting"]) == key]
        cells = [_tried_cell(row) for size in SIZES for row in rows if row["nbytes"] == size]
        yield f"| {key[0]}, {key[1]} | {key[2]} | {key[3]} | " + " | ".join(cells) + " |"


def _tried_cell(row: dict[str, Any]) -> str:
    if row["failed"] or not row["seconds"]:
        return "failed" if row["failed"] else ""
    text = f"{row['nbytes'] / statistics.median(row['seconds']) / 1e9:.3g}"
    return f"**{text}**" if row["used"] else text


def _sizes_header() -> str:
    return " | ".join(format_bytes(size) for size in SIZES)


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
