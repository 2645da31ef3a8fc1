"""Which short launch has the lowest spread on this machine."""

from __future__ import annotations

import argparse
import random
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from scaleproof.calibrate.calibration_run import suite
from scaleproof.claims.metrics_sizes import by_size
from scaleproof.commands.common import print_table
from scaleproof.core.record_schema import Record
from scaleproof.launch.progress import progress_on_terminal
from scaleproof.launch.supervisor import run_plan
from scaleproof.record.store import Store
from scaleproof.spec.case import parse_case
from scaleproof.spec.plan import PlannedLaunch
from scaleproof.spec.programs import programs_folder
from tools.calibration_study.design import digest_s

BLOCKS = 16
_ALONE: dict[str, Any] = {
    "program": "collective",
    "transport": "tcp",
    "collective": "ring",
    "ranks": 1,
    "operation": "all_gather",
}
_TRANSFER: dict[str, Any] = {"program": "transfer", "transport": "tcp", "ranks": 2}
_REDUCE: dict[str, Any] = {"program": "collective", "transport": "tcp", "collective": "ring", "ranks": 2}
CANDIDATES: dict[str, dict[str, Any]] = {
    "one rank hashes 256 KiB, 300 times (the study's)": {
        "program": "own",
        "entry": "digest",
        "ranks": 1,
        "options": {"kib": 256},
        "iterations": 300,
    },
    "one rank gathers 1 MiB, 60 times": {**_ALONE, "sizes": [1 << 20], "iterations": 60},
    "one rank gathers 64 KiB, 300 times": {**_ALONE, "sizes": [64 << 10], "iterations": 300},
    "one rank gathers 2 MiB, 100 times": {**_ALONE, "sizes": [2 << 20], "iterations": 100},
    "tcp round trips of 64 B, 400": {**_TRANSFER, "sizes": [64], "iterations": 400},
    "tcp round trips of 16 KiB, 100": {**_TRANSFER, "sizes": [16 << 10], "iterations": 100},
    "shm round trips of 64 B, 300": {**_TRANSFER, "transport": "shm", "sizes": [64], "iterations": 300},
    "shm round trips of 1 MiB, 50": {**_TRANSFER, "transport": "shm", "sizes": [1 << 20], "iterations": 50},
    "tcp all-reduce of 64 B, 100": {**_REDUCE, "sizes": [64], "iterations": 100},
    "shm all-reduce of 64 KiB, 100": {**_REDUCE, "transport": "shm", "sizes": [64 << 10], "iterations": 100},
}


def pilot(options: argparse.Namespace) -> int:
    """Print spread and time of each candidate."""
    common = {"suite": "calibration", "experiment": "pilot", "warmup": 10}
    cases = {name: parse_case({**common, "arm": name, **fields}) for name, fields in CANDIDATES.items()}
    programs = str(programs_folder(suite().folder))
    shuffler, launches = random.Random(BLOCKS), list[PlannedLaunch]()
    for index in range(BLOCKS):
        block = shuffler.sample(list(cases.values()), len(cases))
        launches += [
            PlannedLaunch(case, index, index, len(launches) + position, programs) for position, case in enumerate(block)
        ]
    with tempfile.TemporaryDirectory(prefix="scaleproof-pilot-") as folder:
        run_plan(launches, Path(folder), size="full", deadline_s=30, progress=progress_on_terminal("pilot"))
        store = Store(Path(folder))
        rows = [_row(name, list(store.records(case.case_id)), store) for name, case in cases.items()]
    print_table(["launch", "median", "spread", "spread without extremes", "time of a launch"], rows)
    return 0


def _value(record: Record, samples: pd.DataFrame) -> float:
    return digest_s(samples) if record.case.program == "own" else float(by_size(record, samples)["time_s"].iloc[0])


def _row(name: str, records: list[Record], store: Store) -> list[str]:
    good = [record for record in records if record.status == "ok"]
    logarithms = np.log([_value(record, store.samples(record).to_pandas()) for record in good])
    # Scaled to equal the standard deviation for normal noise.
    robust = 1.4826 * float(np.median(np.abs(logarithms - np.median(logarithms))))
    wall = float(np.median([record.wall_s for record in good]))
    return [
        name,
        f"{1e6 * float(np.exp(np.median(logarithms))):.1f} us",
        f"{float(np.std(logarithms, ddof=1)):.2%}",
        f"{robust:.2%}",
        f"{wall:.3f} s",
    ]
