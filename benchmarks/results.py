"""`python -m benchmarks.results`: the cost of collecting, judging and querying 10,000 launches with a million samples.

Three launches are run for real, of programs `train`, `collective` and `transfer`; every other record is one of them
under another case, repetition and id, with newly drawn times, written by the project's own writer in the way of a
supervisor."""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from scaleproof.core.record_schema import Record
from scaleproof.launch.supervisor import run_plan
from scaleproof.record.store import Store
from scaleproof.record.write import SAMPLES_FILE
from scaleproof.spec.plan import PlannedLaunch, plan
from scaleproof.spec.suite import Suite, load_suite

LAUNCHES = 10_000
REPETITIONS = 50
SEED = 2020
SUITE = """
suite: many
title: Many launches
experiments:
  training:
    summary: half of the launches
    base:
      {{program: train, ranks: 2, transport: tcp, collective: ring, strategy: sync_overlap,
       workload: {{name: cd_dnn, width: 0.1}}, minibatch: 16, steps: 4, warmup: 1}}
    arms: {{tcp: {{}}}}
    sizes: {{full: {{launches: {repetitions}, matrix: [{{arms: [tcp], sweep: {{learning_rate: {rates}}}}}]}}}}
  collective:
    summary: a quarter
    base:
      {{program: collective, ranks: 2, transport: shm, collective: ring, iterations: 8, warmup: 2,
       sizes: [1 KiB, 4 KiB, 16 KiB, 64 KiB, 256 KiB]}}
    arms: {{shm: {{}}}}
    sizes: {{full: {{launches: {repetitions}, matrix: [{{arms: [shm], sweep: {{budget_mib: {budgets}}}}}]}}}}
  transfer:
    summary: a quarter
    base:
      {{program: transfer, transport: shm, iterations: 16, warmup: 4,
       sizes: [1 KiB, 4 KiB, 16 KiB, 64 KiB, 256 KiB]}}
    arms: {{shm: {{}}}}
    sizes: {{full: {{launches: {repetitions}, matrix: [{{arms: [shm], sweep: {{budget_mib: {budgets}}}}}]}}}}
"""
CLAIMS = """
- {id: many.throughput, kind: context, origin: own, statement: throughput, experiment: training,
   metric: throughput, unit: samples/s, direction: higher, rule: {name: ratio, low: 0, one_sided: true}}
- {id: many.algbw, kind: context, origin: own, statement: rate, experiment: collective,
   metric: algbw, nbytes: 65536, unit: GB/s, direction: higher, rule: {name: ratio, low: 0, one_sided: true}}
"""
PER_CASE = """
SELECT experiment, case_id, count(*) AS launches, median(samples) AS samples FROM launches
WHERE status = 'ok' GROUP BY ALL ORDER BY ALL"""
PER_STEP = """
SELECT l.case_id, s.event, count(*), median(s.end_ns - s.start_ns) AS ns FROM samples s JOIN launches l USING (launch)
WHERE NOT s.warmup GROUP BY ALL ORDER BY ALL"""


def main() -> None:
    """Make the records unless they exist, time every command, print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--launches", type=int, default=LAUNCHES)
    parser.add_argument(
        "--folder", type=Path, help="where the records go, or already are (default: a temporary folder)"
    )
    parser.add_argument("--turns", type=int, default=3, help="how often each command is timed")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = (options.folder or Path(temporary)).absolute()
        suite = _suite(folder, options.launches)
        if not (folder / "results" / "runs").exists():
            make(folder / "results", suite)
        measured = timed(folder, options.turns)
        (folder / "results.json").write_text(json.dumps(measured, indent=1) + "\n")
        print(markdown(measured))


def _suite(folder: Path, launches: int) -> Suite:
    cases = max(1, launches // (4 * REPETITIONS))
    home = folder / "suites" / "many"
    home.mkdir(parents=True, exist_ok=True)
    rates, budgets = (
        [round(0.001 * (1 + number), 3) for number in range(2 * cases)],
        [1 + number for number in range(cases)],
    )
    (home / "suite.yaml").write_text(SUITE.format(repetitions=REPETITIONS, rates=rates, budgets=budgets))
    (home / "claims.yaml").write_text(CLAIMS)
    return load_suite(str(home))


def make(results: Path, suite: Suite) -> None:
    """All launches of the suite's plans: the first of each experiment is run, the others are copies of it."""
    dice, store, began = np.random.default_rng(SEED), Store(results), time.perf_counter()
    for name in suite.experiments:
        first, *others = plan(suite, name, "full")
        outcome = run_plan([first], results, size="full", deadline_s=120)
        record, _ = store.load(outcome.launches[0])
        if record.status != "ok":
            sys.exit(f"{name}: {record.failure}")
        samples = store.samples(record)
        for planned in others:
            _commit(store, record, samples, planned, dice)
    print(f"made in {time.perf_counter() - began:.0f} s", file=sys.stderr)


def _commit(store: Store, record: Record, samples: pa.Table, planned: PlannedLaunch, dice: np.random.Generator) -> None:
    launch = dice.bytes(8).hex()
    folder = store.staging / launch
    folder.mkdir(parents=True)
    for rank in range(planned.case.ranks):
        (folder / f"rank-{rank}.log").write_text("")
    pace = float(dice.normal(1, 0.05))
    times = {name: pa.array((samples[name].to_numpy() * pace).astype(np.int64)) for name in ("start_ns", "end_ns")}
    for name, values in times.items():
        samples = samples.set_column(samples.schema.get_field_index(name), name, values)
    other = {
        "launch": launch,
        "case_id": planned.case.case_id,
        "case": planned.case,
        "plan_index": planned.plan_index,
        "seed": planned.seed,
    }
    artifacts = {name: digest for name, digest in record.artifacts.items() if name != SAMPLES_FILE}
    store.commit(folder, record.model_copy(update={**other, "artifacts": artifacts}), samples)


def timed(folder: Path, turns: int) -> dict[str, Any]:
    """Seconds of every command in a process of its own, and of its processor time, turn by turn: with the index
    deleted, then with it."""
    results, suite = folder / "results", str(folder / "suites" / "many")
    collect = [
        ["collect", suite, name, "--size", "full", "--results", str(results)]
        for name in ("training", "collective", "transfer")
    ]
    query = ["results", "query", "--results", str(results)]
    judge = ["judge", suite, "--size", "full", "--results", str(results)]
    list_one = ["results", "list", f"@launch:{next(results.glob('runs/*/*')).name}", "--results", str(results)]
    steps: dict[str, list[list[str]]] = {
        "collect three experiments, first time": collect,
        "collect them again": collect,
        "judge": [judge],
        "list one launch": [list_one],
        "query: launches by case": [[*query, PER_CASE]],
        "query: medians over all samples, by case and event": [[*query, PER_STEP]],
    }
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in steps}
    for _ in range(turns):
        subprocess.run(["rm", "-rf", str(results / "index")], check=True)
        for name, commands in steps.items():
            began = time.perf_counter(), _processor_s()
            for command in commands:
                subprocess.run([sys.executable, "-m", "scaleproof", *command], check=True, stdout=subprocess.DEVNULL)
            times[name].append((time.perf_counter() - began[0], _processor_s() - began[1]))
            print(f"{name}: {times[name][-1][0]:.2f} s, {times[name][-1][1]:.2f} s of processor time", file=sys.stderr)
    launches = pq.ParquetDataset(
        [results / "tables" / f"many.{name}.full.parquet" for name in ("training", "collective", "transfer")]
    ).read()
    return {"launches": len(launches), "times": times}


def _processor_s() -> float:
    """Processor time of all child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def markdown(measured: dict[str, Any]) -> str:
    """The table of docs/results.md."""
    rows = []
    for name, times in measured["times"].items():
        wall, processor = ([pair[index] for pair in times] for index in (0, 1))
        rows.append(
            f"| {name} | {np.median(wall):.2f} | {min(wall):.2f} to {max(wall):.2f} | {np.median(processor):.2f} |"
        )
    return "\n".join(
        [f"| {measured['launches']} launches | median, s | range | processor, s |", "|---|---|---|---|", *rows]
    )


if __name__ == "__main__":
    main()
