"""Transport rdma beside perftest's `ib_write_bw` and `ib_read_bw`, in one guest, in turns: `python -m
benchmarks.perftest [--repetitions N] [--into FILE]`.

QEMU with a stock kernel, since perftest prints no rates without a clock in /proc/cpuinfo. Both move 1 MiB messages
between two processes over one soft-RoCE device, as many at once as their queues hold. On a machine with an RDMA device,
`--interface NAME` runs both on it, without a guest."""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

from scaleproof.core.context import RankContext
from scaleproof.fabric.guests.guest_plan import INTERFACE
from scaleproof.fabric.verbs import choose
from scaleproof.launch.start.on_guests import run_in_guests
from scaleproof.rank.unsupervised_ranks import run_some_ranks
from scaleproof.spec.case import parse_case
from scaleproof.stats.bootstrap import ratio, ratio_interval
from scaleproof.transports.verbs.rdma import Rdma

SIZE, MESSAGES = 1 << 20, 64
TOOLS = {"write": "ib_write_bw", "read": "ib_read_bw"}
SERVER_S, LIMIT_S = 1.5, 300
RESULT = "perftest.json"
PEAK_AND_AVERAGE = re.compile(r"^\s*\d+\s+\d+\s+([\d.]+)\s+([\d.]+)", re.MULTILINE)


def main() -> int:
    """Print a line per operation and write all samples; the exit code says only whether both ran."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=6)
    parser.add_argument("--into", type=Path)
    parser.add_argument("--interface", help="a verbs port of this machine; else a guest is booted")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside or options.interface:
        path = Path(os.environ["SCALEPROOF_SHARED"]) / RESULT if options.inside else None
        rates = measure(options.interface or INTERFACE, options.repetitions, path)
        if options.inside:
            return 0
    else:
        rates = in_guest(options.repetitions)
    for operation, tool in TOOLS.items():
        print(line(operation, tool, rates[operation]))
    if options.into:
        options.into.write_text(json.dumps(rates, indent=2) + "\n")
    return 0


def in_guest(repetitions: int) -> dict[str, Any]:
    """Run `measure` in a guest under QEMU."""
    with tempfile.TemporaryDirectory(prefix="scaleproof-perftest-") as name:
        command = [sys.executable, "-m", "benchmarks.perftest", "--inside", "--repetitions", str(repetitions)]
        ran = run_in_guests(command, kind="qemu", cpus=2, timeout_s=LIMIT_S * repetitions, keep=Path(name))
        path = Path(name) / RESULT
        if ran.code:
            print(*ran.output, ran.log, "what was measured before follows", sep="\n", file=sys.stderr)
        if not path.exists():
            raise SystemExit("no repetition was finished")
        rates: dict[str, Any] = json.loads(path.read_text())
        return rates


def measure(interface: str, repetitions: int, path: Path | None = None) -> dict[str, Any]:
    """MB/s of perftest and of ours by operation, in turns; the first one alternates. The rates so far are written to
    `path` after each repetition."""
    rates: dict[str, Any] = {operation: {"theirs": [], "ours": []} for operation in TOOLS}
    for repetition in range(repetitions):
        for operation, tool in TOOLS.items():
            turns = [("theirs", partial(theirs, tool, interface)), ("ours", partial(ours, operation, interface))]
            for who, run in turns if repetition % 2 else reversed(turns):
                rates[operation][who].append(run())
        if path:
            path.write_text(json.dumps(rates))
    return rates


def theirs(tool: str, interface: str) -> float:
    """MB/s (10^6) of one run of perftest, its average over all messages."""
    address = choose(interface)
    gid = ["-x", str(address.gid.index)] if address.gid else []
    command = [
        tool,
        "-d",
        address.port.device,
        "-i",
        str(address.port.number),
        *gid,
        "-F",
        "-s",
        str(SIZE),
        "-n",
        str(MESSAGES),
        "--report_gbits",
    ]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(SERVER_S)
        process = subprocess.run([*command, "127.0.0.1"], capture_output=True, text=True, timeout=LIMIT_S, check=False)
        match = PEAK_AND_AVERAGE.search(process.stdout)
        if match is None:
            raise RuntimeError(f"{tool} told no rate: {process.stdout[-300:]}{process.stderr[-300:]}")
        return float(match[2]) * 1e3 / 8
    finally:
        server.kill()
        server.wait()


def ours(operation: str, interface: str) -> float:
    """MB/s of one launch of two ranks: all messages posted, then all waited for, as perftest does."""
    case = parse_case(
        {
            "program": "collective",
            "suite": "bench",
            "experiment": "perftest",
            "arm": operation,
            "ranks": 2,
            "transport": "rdma",
            "collective": "ring",
            "sizes": [8],
            "interface": interface,
            "transport.region_mib": 32,
        }
    )
    with tempfile.TemporaryDirectory(prefix="scaleproof-perftest-") as name:
        errors = run_some_ranks(
            case, [0, 1], Path(name), "", partial(_move, operation=operation, into=Path(name) / "rate"), LIMIT_S
        )
        if any(errors):
            raise RuntimeError("\n".join(filter(None, errors)))
        return float((Path(name) / "rate").read_text())


def _move(context: RankContext, operation: str, into: Path) -> None:
    transport = Rdma.connect(context)
    region = transport.register(SIZE)
    buffer, remote_region = transport.allocate(SIZE), transport.remote(region, 1 - context.rank)
    buffer[:] = 1
    assert region.local is not None
    region.local[:] = 1
    transport.barrier()
    if context.rank == 0:
        start = time.perf_counter()
        handles = [
            transport.write(buffer, remote_region) if operation == "write" else transport.read(remote_region, buffer)
            for _ in range(MESSAGES)
        ]
        for handle in handles:
            handle.wait()
        into.write_text(str(SIZE * MESSAGES / (time.perf_counter() - start) / 1e6))
    transport.barrier()
    transport.close()


def line(operation: str, tool: str, rates: dict[str, list[float]]) -> str:
    """Medians and the ratio of them, with its bootstrap interval over runs."""
    own, other = statistics.median(rates["ours"]), statistics.median(rates["theirs"])
    interval = ratio_interval(rates["ours"], rates["theirs"], paired=True)
    spread = f" [{interval.low:.2f}, {interval.high:.2f}]" if interval else ""
    quotient = ratio(rates["ours"], rates["theirs"])
    return (
        f"{operation}: ours {own:.1f} MB/s, {tool} {other:.1f} MB/s, "
        f"ratio {quotient:.2f}{spread} (n = {len(rates['ours'])} each)"
    )


if __name__ == "__main__":
    sys.exit(main())
