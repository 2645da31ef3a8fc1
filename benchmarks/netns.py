"""Measures fabric `netns`: the time to set up a cluster, and the rate of its shaped links under iperf3 and under our
transport tcp, in turns. `python -m benchmarks.netns [--rates MBIT ...] [--patterns NAME ...] [--repetitions N] [--nodes
N] [--into FILE]`. All figures hold for this machine only."""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil

from benchmarks.flows import PATTERNS
from scaleproof.core.atomic_write import read_json
from scaleproof.fabric.netns.veth_links import FRAME, MTU
from scaleproof.launch.start.on_namespaces import run_in_namespaces
from scaleproof.record.digest import machine_id
from scaleproof.spec.cluster import star
from scaleproof.stats.intervals import median_interval
from tools.reference import own_runs

TOOLS = ("iperf3", "tcp")
PAYLOAD = MTU - 20 - 32
"""Bytes of a full segment: IPv4's header and TCP's with time stamps are left out."""
WITHIN, SET_UP_S = 0.03, 10.0
"""Wanted: a link carries its rate, headers included, but for this share; so many nodes stand in this time."""
SECONDS = 2
ADVICE = "iperf3 is not installed, its arms are left out; type `apt-get install iperf3`"


def main() -> int:
    """Print a line per row; the exit code says only whether all ran."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rates", type=float, nargs="+", default=[100.0, 1000.0, 10000.0], help="Mbit/s")
    parser.add_argument("--patterns", nargs="+", default=list(PATTERNS), choices=list(PATTERNS))
    parser.add_argument("--repetitions", type=int, default=6)
    parser.add_argument("--nodes", type=int, default=64, help="of the cluster whose set-up is timed")
    parser.add_argument("--into", type=Path)
    options = parser.parse_args()
    tools = [tool for tool in TOOLS if tool != "iperf3" or shutil.which(tool)]
    if len(tools) < len(TOOLS):
        print(ADVICE, file=sys.stderr)
    result: dict[str, Any] = {
        "machine": machine_id(),
        "set_up": set_up(options.nodes, options.repetitions),
        "links": [],
    }
    print(
        f"set-up of {options.nodes} nodes: {statistics.median(result['set_up']['stand_s']):.2f} s until all stand, "
        f"{statistics.median(result['set_up']['whole_s']):.2f} s with the end of the last (wanted: {SET_UP_S:g} s)"
    )
    for mbit in options.rates:
        for pattern in options.patterns:
            rows = links(tools, pattern, mbit, options.repetitions)
            result["links"] += rows
            print(*map(line, rows), sep="\n", flush=True)
    if options.into:
        options.into.write_text(json.dumps(result, indent=1) + "\n")
        own_runs.note(options.into)
    return 0


def set_up(nodes: int, repetitions: int) -> dict[str, Any]:
    """Seconds until every node of a star, with checked links, can run its command, and until the cluster is removed
    again."""
    seconds: dict[str, Any] = {"nodes": nodes, "stand_s": [], "whole_s": []}
    for _ in range(repetitions):
        started = time.time()
        ran = run_in_namespaces(
            [sys.executable, "-S", "-c", "import time; print(time.time())"], star("set-up", nodes, 100.0, 0.0)
        )
        if ran.code:
            raise SystemExit(f"the cluster did not stand: {ran.log}")
        seconds["stand_s"].append(max(map(float, ran.output)) - started)
        seconds["whole_s"].append(time.time() - started)
    return seconds


def links(tools: list[str], pattern: str, mbit: float, repetitions: int) -> list[dict[str, Any]]:
    """A row per tool, Mbit/s of payload through the busiest link for each repetition; tools take turns, and the first
    one alternates."""
    nodes, _ = PATTERNS[pattern]
    ceiling = mbit * PAYLOAD / FRAME
    common = {"pattern": pattern, "nodes": nodes, "mbit": mbit, "ceiling_mbit": ceiling}
    rows: dict[str, dict[str, Any]] = {
        tool: {"tool": tool, **common, "goodput_mbit": [], "wire_mbit": [], "idle": []} for tool in tools
    }
    for repetition in range(repetitions):
        for tool in tools if repetition % 2 else reversed(tools):
            for name, value in once(tool, pattern, mbit).items():
                rows[tool][name].append(value)
    return list(rows.values())


def once(tool: str, pattern: str, mbit: float) -> dict[str, float]:
    """Mbit/s through the busiest link (of several the slowest), payload and frames with their headers, and the share of
    this machine's cores that stayed idle. Frames are counted where they leave a node. With several senders to one node
    they are computed from the received payload, since all frames are full."""
    nodes, streams = PATTERNS[pattern]
    with tempfile.TemporaryDirectory(prefix="scaleproof-netns-") as name:
        before = psutil.cpu_times()
        command = [sys.executable, "-m", "benchmarks.flows", tool, pattern, str(mbit), str(SECONDS)]
        ran = run_in_namespaces(command, star("flows", nodes, mbit, 0.0), keep=Path(name))
        after = psutil.cpu_times()
        if ran.code:
            raise SystemExit(f"{tool}, {pattern}, {mbit:g} Mbit/s: {ran.output} {ran.log}")
        rates_of_nodes = [read_json(Path(name) / f"rate-{node}.json") for node in range(nodes)]
    rates = {stream: rate for each in rates_of_nodes for stream, rate in each["payload"].items()}
    into = {target: [source for source, other in streams if other == target] for _, target in streams}
    goodput = min(sum(rates[f"{source}-{target}"] for source in sources) for target, sources in into.items())
    several = any(len(sources) > 1 for sources in into.values())
    came = {stream: rate for each in rates_of_nodes for stream, rate in each["came"].items()} or rates
    wire = (
        sum(came.values()) * FRAME / PAYLOAD
        if several
        else min(each["wire"] for each in rates_of_nodes if each["wire"])
    )
    return {"goodput_mbit": goodput, "wire_mbit": wire, "idle": (after.idle - before.idle) / (sum(after) - sum(before))}


def line(row: dict[str, Any]) -> str:
    """Medians: share of the link's rate with an interval over repetitions, whether the target is met, and goodput
    beside its ceiling."""
    shares = [wire / row["mbit"] for wire in row["wire_mbit"]]
    interval, share = median_interval(shares), statistics.median(shares)
    spread = f" [{interval.low:.3f}, {interval.high:.3f}]" if interval else ""
    met = "met" if abs(share - 1) <= WITHIN else "missed"
    goodput = f"goodput {statistics.median(row['goodput_mbit']):.1f} of at most {row['ceiling_mbit']:.1f} Mbit/s"
    idle = f"{statistics.median(row['idle']):.0%} of the cores idle"
    return (
        f"{row['mbit']:g} Mbit/s, {row['pattern']}, {row['tool']}: {share:.3f}{spread} of the rate, {met}; "
        f"{goodput}; {idle} (n = {len(shares)})"
    )


if __name__ == "__main__":
    sys.exit(main())
