"""Upper bounds of this machine, each from several launches of a separate process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from scaleproof.paths import IMPORT_ROOT
from scaleproof.record.machine import Bound

SIZES = (64 << 10, 1 << 20, 16 << 20, 64 << 20)
"""Bytes: sizes that fit one core's cache, the shared cache, and neither."""
LAUNCHES = 6
"""More would seldom find a faster one: each launch keeps the fastest of many repetitions."""
TIMEOUT_S = 120.0
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class Bounds:
    """The results of all launches of the programs that measure bounds."""

    def __init__(self) -> None:
        self.copy: dict[int, list[float]] = {size: [] for size in SIZES}
        self.all_reduce: dict[int, list[float]] = {size: [] for size in SIZES}
        self.plain_copy: dict[int, list[float]] = {size: [] for size in SIZES}
        self.plain_all_reduce: dict[int, list[float]] = {size: [] for size in SIZES}
        self.loopback: list[float] = []
        self.flop: list[float] = []

    def launch(self) -> None:
        """Run each program once. Raises subprocess.CalledProcessError or TimeoutExpired when one does not end well."""
        memory = _run("scaleproof.calibrate.memory_bandwidth", *map(str, SIZES))
        plain = _run("scaleproof.calibrate.plain_bandwidth", *map(str, SIZES))
        for size in SIZES:
            self.copy[size].append(size / memory["copy"][str(size)])
            self.all_reduce[size].append(size / memory["all_reduce"][str(size)])
            self.plain_copy[size].append(size / plain["copy"][str(size)])
            self.plain_all_reduce[size].append(size / plain["all_reduce"][str(size)])
        self.loopback.append(_run("scaleproof.calibrate.loopback_bandwidth")["bytes_per_second"])
        self.flop.append(_run("scaleproof.calibrate.matrix_product_rate")["flop_per_second"])

    def bounds(self) -> tuple[Bound, ...]:
        """The fastest launch of each program: a bound is what was reached at best."""
        copies = [
            _bound("memory_copy", size, rates, "one process copies memory, nobody else runs")
            for size, rates in self.copy.items()
        ]
        additions = "two processes do an all-reduce's adds and copies on shared memory, nothing else; algbw"
        reduces = [_bound("two_rank_all_reduce", size, rates, additions) for size, rates in self.all_reduce.items()]
        across = "two processes, memory of one to memory of the other, by shared pieces or the kernel, the faster"
        copies += [_bound("plain_memory_copy", size, rates, across) for size, rates in self.plain_copy.items()]
        reduced = f"{across}; the adds and copies of an all-reduce, nothing else; algbw"
        reduces += [
            _bound("plain_two_rank_all_reduce", size, rates, reduced) for size, rates in self.plain_all_reduce.items()
        ]
        stream = _bound(
            "loopback", None, self.loopback, "one TCP connection between two processes over lo, fastest buffer"
        )
        products = _bound(
            "single_core_flop", None, self.flop, "float32 matrix product on one core, NumPy's BLAS", "FLOP/s"
        )
        return (*copies, *reduces, stream, products)


def _bound(name: Any, nbytes: int | None, rates: list[float], procedure: str, unit: str = "B/s") -> Bound:
    taken = f"{procedure}; fastest of {len(rates)} launches"
    best = max(rates)
    return Bound(name=name, nbytes=nbytes, value=best, low=min(rates), high=best, n=len(rates), unit=unit, taken=taken)


def _run(module: str, *arguments: str) -> Any:
    completed = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=IMPORT_ROOT,
        env={**os.environ, **ONE_THREAD},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=True,
    )
    return json.loads(completed.stdout)
