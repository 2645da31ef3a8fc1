"""A results folder made up for tests of the pages: plausible records of a plan with fixed noise. Nothing in it was
measured."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any, get_args

import numpy as np

from scaleproof.claims.claim_form import Deviation, Rule
from scaleproof.claims.claims_file import BaseOut, ClaimResult, ControlOut, IntervalOut, Reduction, write_claims
from scaleproof.claims.judge import judge_suite
from scaleproof.claims.metrics import PER_LAUNCH
from scaleproof.claims.outcome import OF_CHECKS, Outcome, PointFacts, RangeFacts, Reason, Verdict
from scaleproof.claims.sentences import rule_sentence
from scaleproof.claims.verdict_rules import Estimate, apply_rule
from scaleproof.core.record_schema import (
    Check,
    Clock,
    Code,
    Failure,
    PreflightCheck,
    RankNetwork,
    RankStatus,
    Record,
    Warning,
)
from scaleproof.core.recorder import EVENT_DTYPE
from scaleproof.core.stall_schema import RankDoing, Stall
from scaleproof.record.machine import Bound, MachineProfile, write_profile
from scaleproof.record.store import Store
from scaleproof.record.table import collect, write_table
from scaleproof.record.write import samples_table
from scaleproof.report.sections import Cell, Section
from scaleproof.spec.case import AnyCase, CollectiveCase, OwnCase, TrainCase, TransferCase
from scaleproof.spec.plan import PlannedLaunch, plan
from scaleproof.spec.suite import Suite, load_suite
from scaleproof.stats.intervals import Interval, Method
from tests.noise_floors import TRAINING
from tests.noise_floors import floor as made_up

HOSTILE = '<script>document.title = "owned"</script> & "quoted" \x1b[31mred\x1b[0m'
MS = 1_000_000
"""Nanoseconds."""
SPEED = {"shm": 1.0, "tcp": 1.35, "gloo": 1.6, "mpi": 1.5, "horovod": 1.9, "grpc": 2.3, None: 0.0}
"""Cost of communication, relative."""
EVIDENCE = {"host": "measured", "simulated": "simulated"}
COUNTERS = {"lo": {"rx_bytes": 1000, "rx_packets": 10, "tx_bytes": 1000, "tx_packets": 10}}
AFTER = {"lo": {"rx_bytes": 90_001_000, "rx_packets": 2010, "tx_bytes": 90_001_000, "tx_packets": 2010}}
ENVIRONMENT = {
    "cpu": "Made-up Processor <2>",
    "cores": 2,
    "memory_mib": 8000,
    "kernel": "6.1.0-test",
    "python": "3.11.2",
    "variables": {"OMP_NUM_THREADS": "1"},
}

SUITE = """
suite: example
title: An example <with> brackets
experiments:
  throughput:
    summary: speed
    base: {program: train, strategy: sync_overlap, workload: {name: cd_dnn, width: 0.25}, minibatch: 8, steps: 4}
    arms:
      tcp: {transport: tcp, collective: ring}
      gloo: {transport: gloo}
      alone: {transport: null, strategy: local_only}
    sizes:
      smoke:
        launches: 6
        matrix: [{arms: [tcp, gloo], sweep: {ranks: [2, 4]}}, {arms: [alone], set: {ranks: 1}}]
  convergence:
    summary: learning
    base: {program: train, strategy: sync_overlap, workload: {name: dnn_digits, data: digits}, minibatch: 8, steps: 12,
      warmup: 0, evaluate_every: 4, ranks: 2}
    arms: {gloo: {transport: gloo}}
    sizes: {smoke: {launches: 3, matrix: [{arms: [gloo]}]}}
  transfer:
    summary: messages
    base: {program: transfer, iterations: 3, warmup: 1, sizes: [0, 1 KiB, 1 MiB]}
    arms: {tcp: {transport: tcp}, shm: {transport: shm}}
    sizes: {smoke: {launches: 2, matrix: [{arms: [tcp, shm]}]}}
"""


PROFILE = MachineProfile(
    machine="madeup",
    code="d" * 16,
    measured_at="2026-01-01T00:00:00Z",
    floors=(
        made_up("throughput", TRAINING.model_copy(update={"shared_cores": True}), share=0.034, spread=0.02),
        made_up("algbw", nbytes=1024, share=0.021, spread=0.01),
        made_up("algbw", nbytes=1 << 20, share=0.013, spread=0.01),
    ),
    bounds=(
        Bound(
            name="memory_copy",
            nbytes=1 << 20,
            value=1.23e10,
            low=1.2e10,
            high=1.25e10,
            n=6,
            unit="B/s",
            taken="made up",
        ),
        Bound(name="single_core_flop", value=4e10, low=3.9e10, high=4.1e10, n=6, unit="FLOP/s", taken="made up"),
    ),
)


def example(root: Path) -> tuple[Path, Suite]:
    """A results folder with a suite of few launches and a claim of each verdict; returns both."""
    folder = root / "suites" / "example"
    folder.mkdir(parents=True)
    (folder / "suite.yaml").write_text(SUITE)
    suite, results = load_suite(str(folder)), root / "results"
    make(results, suite, "smoke")
    launches = [record.launch for record in Store(results).records() if record.status == "failed"]
    write_profile(results, PROFILE)
    verdicts: list[Any] = [*get_args(Verdict), None]
    results_by_claim = [
        claim(verdict, number, tuple(launches) if verdict == "not reproduced" else ())
        for number, verdict in enumerate(verdicts)
    ]
    write_claims(results / "claims" / "example.smoke.json", results_by_claim)
    return results, suite


def rate_cells(sections: Iterable[Section]) -> list[Cell]:
    """Values of rates in the tables of sections; ideal ones, which nothing attains, and missing ones left out."""
    return [
        cell
        for section in sections
        for table in section.tables
        for row in table.rows
        for column, cell in zip(table.columns[1:], row.cells[1:], strict=True)
        if "/s)" in (table.caption.split(":")[0] if table.stacked else column)
        if "ideal" not in column and cell.text != "–"
    ]


def range_outcome(verdict: Verdict = "reproduced") -> Outcome:
    """The same rule at four points of a range."""
    rule = Rule(name="within", tolerance=0.2)
    points = tuple(
        PointFacts(
            at={"compute.efficiency": point / 10, "fabric.cluster": "fdr"},
            outcome=apply_rule(
                rule, Estimate(6 + point / 10, Interval(6.1, 6.9, 0.969, METHOD, (6,)), 6), 6.5, "higher"
            ),
        )
        for point in range(4, 8)
    )
    return Outcome(verdict=verdict, reason=Reason.RANGE_AGREES, facts=RangeFacts(points=points))


METHOD = Method.ORDER_STATISTICS


def claim(verdict: Verdict | None, number: int, runs: tuple[str, ...]) -> ClaimResult:
    """A claim with every field that a page can show; the first one was judged over a range."""
    interval = IntervalOut(low=1.5 + number, high=1.7 + number, coverage=0.969, method="order statistics")
    return ClaimResult(
        id=f"example.claim{number}",
        suite="example",
        size="smoke",
        kind="context" if verdict is None else "check" if verdict in OF_CHECKS.values() else "claim",
        origin="paper",
        statement=f"Statement {number} {HOSTILE}",
        metric="throughput",
        published=6.5,
        ours=1.6 + number,
        interval=interval,
        n=6,
        unit="x",
        evidence="measured",
        evidence_details=() if number else ("soft-RoCE",),
        reduced=() if number else (Reduction(workload="vgg_a", image_side=64, width=0.25, factor=182.5),),
        verdict=verdict,
        rule=f"all of it within 20 % of 6.5; number {number}" if number else rule_sentence(range_outcome()),
        outcome=None if number else range_outcome(),
        reason=f"because of number {number}",
        runs=runs,
        experiment="throughput",
        base=BaseOut(select={"ranks": 1}, value=10.0, unit="samples/s", n=6),
        provenance="paper",
        gate=True,
        direction="higher",
        where="abstract",
        source="the paper",
        deviations=(Deviation(kind="scale", text="two ranks"),),
        control=ControlOut(statement="no exchange", ours=1.0, interval=None, n=6, shows_effect=False),
    )


def make(results: Path, suite: Suite, size: str) -> None:
    """Records, tables and verdicts. Of each experiment the last launch is missing; of the first one, one failed and one
    cannot run here."""
    store = Store(results)
    for position, (name, experiment) in enumerate(suite.experiments.items()):
        if size not in experiment.sizes:
            continue
        planned = plan(suite, name, size)
        for order, launch in enumerate(planned[:-1] if len(planned) > 3 else planned):
            status = {1: "failed", 2: "not_runnable"}.get(order, "ok") if position == 0 and len(planned) > 3 else "ok"
            _commit(store, launch, f"{position:02x}{order:04x}", size, status)
        write_table(
            collect(planned, Store(results), PER_LAUNCH), results / "tables" / f"{suite.name}.{name}.{size}.parquet"
        )
    if (suite.folder / "claims.yaml").exists():
        write_claims(results / "claims" / f"{suite.name}.{size}.json", judge_suite(suite, size, Store(results)))


def _commit(store: Store, planned: PlannedLaunch, launch: str, size: str, status: str) -> None:
    case, dice = planned.case, random.Random(f"{planned.case.case_id}/{planned.plan_index}")
    folder = store.staging / launch
    folder.mkdir(parents=True)
    for rank in range(case.ranks if status != "not_runnable" else 0):
        lines = [
            "starting",
            f"rank {rank} of {case.ranks}",
            *(["Traceback (made up)", HOSTILE] if status == "failed" else ["done"]),
        ]
        (folder / f"rank-{rank}.log").write_text("\n".join(lines) + "\n")
    events = {rank: _events(case, rank, dice) for rank in range(case.ranks)} if status == "ok" else {}
    store.commit(folder, _record(planned, launch, size, status), samples_table(events))


def _record(planned: PlannedLaunch, launch: str, size: str, status: str) -> Record:
    case, started = planned.case, status != "not_runnable"
    failure: Failure | None = None
    if status == "failed":
        failure = Failure(
            code="rank_raised",
            rank=case.ranks - 1,
            message=f"ValueError: {HOSTILE}",
            step=3,
            operation="backward",
            advice="the rank's log has the traceback",
        )
    if status == "not_runnable":
        failure = Failure(
            code="not_runnable",
            rank=-1,
            message="no such library",
            step=-1,
            operation="",
            advice="type `scaleproof doctor`",
        )
    facts = {
        "peak_memory_mib": 301.2,
        "threads": 5,
        "affinity": [0, 1],
        "packages": {"numpy": "2.4.0"},
        "libraries": ["libc.so.6"],
    }
    crowded = case.ranks > 2
    before = {"lo": {"rx_bytes": 0, "rx_packets": 0, "tx_bytes": 1000, "tx_packets": 10}}
    after = {"lo": {"rx_bytes": 0, "rx_packets": 0, "tx_bytes": 1000 + 95_000_000, "tx_packets": 4010}}
    values: dict[str, Any] = {
        "launch": launch,
        "case_id": case.case_id,
        "case": case,
        "size": size,
        "plan_index": planned.plan_index,
        "seed": planned.seed,
        "evidence": EVIDENCE.get(case.fabric, "emulated"),
        "oversubscribed": crowded,
        "shared_cores": case.ranks == 2 and case.program == "train",
        "status": status,
        "failure": failure,
        "environment": ENVIRONMENT,
        "machine": "madeup",
        "wall_s": 1.0,
        "ranks": [
            _rank(rank, "failed" if failure and rank == case.ranks - 1 else "ok", facts)
            for rank in range(case.ranks if started else 0)
        ],
        "checks": [
            Check(rank=rank, name="equal", passed=True, detail="the same bits")
            for rank in range(case.ranks if started else 0)
        ],
        "warnings": [
            Warning(code="oversubscribed", message="more ranks than cores", advice="do not read times as scaling")
        ]
        if crowded
        else [],
        "code": Code(version="0.1.0", commit=None, dirty=None, digest="d" * 16),
        "started_at": f"2026-01-01T00:00:{planned.order % 60:02d}Z",
        "transport": _transport(case) if started else {},
        "preflight": [
            PreflightCheck(code="connects", passed=True, message="every pair of ranks connects on lo"),
            PreflightCheck(code="memlock", passed=None, message=f"not readable {HOSTILE}", advice="read the manual"),
        ],
        "network": [
            RankNetwork(rank=rank, namespace="4026531840", asked_bytes=45_000_000, before=before, after=after)
            for rank in range(case.ranks)
        ],
        "clocks": [Clock(rank=rank, offset_ns=120 * rank, uncertainty_ns=900) for rank in range(case.ranks)],
        "stall": _stall(case.ranks) if failure and started else None,
        "command": [
            "scaleproof",
            "run",
            case.suite,
            case.experiment,
            "--size",
            size,
            "--case",
            case.case_id,
            "--launch",
            str(planned.plan_index),
            "--again",
        ],
    }
    return Record(**values)


def _stall(ranks: int) -> Stall:
    doing = [
        RankDoing(
            rank=rank,
            step=3,
            operation="all_reduce",
            waits_for=ranks - 1 if rank < ranks - 1 else -1,
            still_s=4.2,
            stack=[f"File {HOSTILE}"],
        )
        for rank in range(ranks)
    ]
    return Stall(first_silent=ranks - 1, why=f"everybody waits for it {HOSTILE}", ranks=doing)


def _rank(rank: int, status: str, facts: dict[str, Any]) -> RankStatus:
    failed = status == "failed"
    message = f"ValueError: {HOSTILE}" if failed else ""
    return RankStatus(
        rank=rank,
        pid=100 + rank,
        exit_code=int(failed),
        signal=None,
        status="failed" if failed else "ok",
        code="rank_raised" if failed else None,
        message=message,
        step=3,
        operation="backward" if failed else "barrier",
        facts=facts,
    )


def _transport(case: AnyCase) -> dict[str, Any]:
    traffic = [{"nbytes": 45_000_000, "messages": 900}] * case.ranks
    path = {
        "library": "made up",
        "path": "shared memory" if case.transport == "shm" else "socket",
        "progress": "caller",
    }
    return {
        "ranks": [path] * case.ranks,
        "traffic": traffic,
        "interface": case.interface,
        "counters_before": COUNTERS,
        "counters_after": AFTER,
    }


def _events(case: AnyCase, rank: int, dice: random.Random) -> np.ndarray:
    assert not isinstance(case, OwnCase)
    rows = _training(case, dice) if isinstance(case, TrainCase) else _sweep(case, rank, dice)
    events = np.zeros(len(rows), EVENT_DTYPE)
    for row, (event, step, warmup, start, end, nbytes, value) in enumerate(rows):
        if event != "test_accuracy" or rank == 0:
            events[row] = (event, step, warmup, round(start * MS) + MS, round(end * MS) + MS, nbytes, value)
    return events[events["end_ns"] != 0]


def _training(case: TrainCase, dice: random.Random) -> list[tuple[Any, ...]]:
    compute = {"vgg_a": 180.0, "overfeat_fast": 120.0, "cd_dnn": 60.0, "dnn_digits": 2.0, "vgg_digits": 6.0}[
        case.workload
    ] / case.ranks
    exposed = 0.35 * compute * SPEED[case.transport] * (1.0 if case.strategy == "sync" else 0.6)
    rows, now, nan = [], 0.0, math.nan
    for step in range(case.warmup + case.steps):
        warmup, noise = step < case.warmup, 1 + 0.04 * dice.gauss(0, 1)
        if step == case.warmup:
            rows.append(("start", step, False, now, now, 0, nan))
        begun = now
        for event, length in (("input", 0.05), ("forward", 0.3), ("backward", 0.55)):
            rows.append((event, step, warmup, now, now + compute * length * abs(noise), 0, nan))
            now += compute * length * abs(noise)
        rows.append(("communication", step, warmup, now - 0.2 * compute, now + exposed, 1 << 20, nan))
        now += exposed
        rows.append(("update", step, warmup, now, now + compute * 0.07, 0, nan))
        now += compute * 0.09
        rows.append(("step", step, warmup, begun, now, 0, nan))
        rows.append(("loss", step, warmup, now, now, 0, 2.3 * math.exp(-step / 30) + 0.05 + 0.01 * dice.random()))
        if case.evaluate_every and (step + 1) % case.evaluate_every == 0:
            rows.append(
                (
                    "test_accuracy",
                    step,
                    False,
                    now,
                    now,
                    0,
                    0.975 - 0.85 * math.exp(-(step + 1) / 30) + 0.005 * dice.random(),
                )
            )
    return [*rows, ("end", case.warmup + case.steps - 1, False, now, now, 0, nan)]


def _sweep(case: TransferCase | CollectiveCase, rank: int, dice: random.Random) -> list[tuple[Any, ...]]:
    event = case.operation if isinstance(case, CollectiveCase) else "transfer"
    rows, now = [("start", 0, False, 0.0, 0.0, 0, math.nan)], 0.0
    for nbytes in case.sizes if event != "transfer" or rank == 0 else ():
        for step in range(case.iterations):
            length = SPEED[case.transport] * (0.02 + nbytes / 3e6) * (1 + 0.1 * dice.random())
            rows.append((event, step, step < case.warmup, now, now + length, nbytes, math.nan))
            now += length
    return [*rows, ("end", 0, False, now, now, 0, math.nan)]
