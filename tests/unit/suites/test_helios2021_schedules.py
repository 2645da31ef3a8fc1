"""The event loop of helios2021: what must hold of every schedule, beside a slow one that is written another way."""

from __future__ import annotations

import importlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scaleproof.programs.own import load_entry
from scaleproof.simulate.predict import Predictor
from scaleproof.spec.errors import SpecError
from scaleproof.spec.plan import PlannedLaunch
from tests.short_form import case_from

PROGRAMS = Path(__file__).resolve().parents[3] / "suites" / "helios2021" / "programs"
NAMES = ("jobs", "simulation", "engine", "policies", "audit", "traces")
load_entry(PROGRAMS, "scheduling")
jobs, simulation, engine, policies, audit, traces = (
    importlib.import_module(f"suite_programs.{name}") for name in NAMES
)


@pytest.fixture(autouse=True)
def _programs() -> None:
    """The programs of this suite, also after those of another one were loaded: compiled code names its modules."""
    load_entry(PROGRAMS, "scheduling")
    globals().update({name: importlib.import_module(f"suite_programs.{name}") for name in NAMES})


PER_NODE = 4
PLACEMENTS = ("consolidate", "first_fit", "fungible")


def made(rows: list[tuple[int, int, int]], nodes: tuple[int, ...] = (2,), vc: list[int] | None = None) -> Any:
    """Jobs of submission, duration and GPUs."""
    submit, duration, gpus = (np.array(column) for column in zip(*rows, strict=True))
    none = np.zeros(len(rows), np.int64)
    pools = jobs.Pools(tuple(f"vc{number}" for number in range(len(nodes))), np.array(nodes), PER_NODE)
    where = none if vc is None else np.array(vc)
    raw = jobs.Jobs("made", pools, submit.astype(float), duration.astype(float), gpus, where, none, none - 1, none)
    return jobs.sorted_jobs(raw)


ROWS = st.lists(st.tuples(st.integers(0, 30), st.integers(1, 20), st.integers(1, 8)), min_size=1, max_size=25)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    ROWS,
    st.sampled_from(sorted(set(policies.POLICIES) - {"qssf_lightgbm"})),
    st.sampled_from(PLACEMENTS),
    st.booleans(),
)
def test_no_gpu_is_given_twice_no_job_is_lost_and_nothing_that_fits_waits(
    rows: list[tuple[int, int, int]], policy: str, placement: str, backfill: bool
) -> None:
    jobs = made(rows)
    found = simulation.simulate(jobs, policies.rule_of(policy, jobs, 1, placement), placement, backfill, recorded=True)
    assert [name for name, holds, _ in audit.audit(jobs, found) if not holds] == []


def slowly(jobs: Any, key: np.ndarray, backfill: bool) -> np.ndarray:
    """When each job starts on a pool of GPUs, second by second (jobs,)."""
    start, free = np.full(jobs.count, -1.0), int(jobs.pools.gpus)
    running: list[tuple[float, int]] = []
    for now in range(2000):
        for end, job in list(running):
            if end <= now:
                running.remove((end, job))
                free += int(jobs.gpus[job])
        waiting = [job for job in range(jobs.count) if jobs.submit[job] <= now and start[job] < 0]
        for job in sorted(waiting, key=lambda job: (key[job], job)):
            if jobs.gpus[job] <= free:
                start[job] = now
                free -= int(jobs.gpus[job])
                running.append((now + jobs.duration[job], job))
            elif not backfill:
                break
    return start


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ROWS, st.sampled_from(["fifo", "sjf", "service", "fewest"]), st.booleans())
def test_a_pool_starts_jobs_when_a_slow_loop_does(
    rows: list[tuple[int, int, int]], policy: str, backfill: bool
) -> None:
    jobs = made(rows)
    rule = policies.rule_of(policy, jobs, 1)
    found = simulation.simulate(jobs, rule, "fungible", backfill)
    assert found.first.tolist() == slowly(jobs, rule.given, backfill).tolist()


def test_head_of_line_blocking_and_backfill() -> None:
    jobs = made([(0, 10, 6), (1, 10, 8), (2, 1, 1)])
    blocking = simulation.simulate(jobs, policies.rule_of("fifo", jobs, 1))
    passing = simulation.simulate(jobs, policies.rule_of("fifo", jobs, 1), backfill=True)
    assert blocking.first.tolist() == [0, 10, 20] and passing.first.tolist() == [0, 10, 2]
    assert blocking.blocked == pytest.approx(8.0) and passing.blocked == 0  # the small job would fit from 2 s to 10 s


def test_consolidate_takes_the_fullest_node_and_first_fit_the_first() -> None:
    jobs = made([(0, 100, 2), (0, 100, 3), (1, 9, 1), (2, 9, 2)])
    tight = simulation.simulate(jobs, policies.rule_of("fifo", jobs, 1), "consolidate")
    loose = simulation.simulate(jobs, policies.rule_of("fifo", jobs, 1), "first_fit")
    assert tight.first.tolist() == [0, 0, 1, 2]  # 1 GPU fills the node of 3, so that 2 are left on the other
    assert loose.first[3] == 10  # it went to the node of 2: no node has 2 free
    whole = made([(0, 5, 1), (0, 5, 1), (1, 5, 4)], nodes=(2,))
    assert simulation.simulate(whole, policies.rule_of("fifo", whole, 1), "consolidate").first[2] == 1


def test_srtf_stops_a_job_only_where_the_new_one_then_fits_and_charges_the_checkpoint() -> None:
    jobs = made([(0, 100, 4), (10, 20, 8)], nodes=(2,))
    found = simulation.simulate(jobs, policies.rule_of("srtf", jobs, 1))
    assert found.stopped == 1 and found.first.tolist() == [0, 10] and found.end[1] == 30
    assert found.end[0] == 30 + 90 + 30  # what was left, and 30 s for a job of at most 8 GPUs
    jobs = made([(0, 15, 4), (0, 100, 4), (10, 20, 8)], nodes=(2,))
    found = simulation.simulate(jobs, policies.rule_of("srtf", jobs, 1))
    assert found.first[2] == 15 and found.stopped == 1  # at 10 s one job has less left: stopping the other is in vain


def test_srtf_leaves_running_what_it_does_not_need() -> None:
    jobs = made([(0, 100, 1), (0, 90, 4), (0, 80, 3), (10, 5, 4)], nodes=(2,))
    found = simulation.simulate(jobs, policies.rule_of("srtf", jobs, 1))
    assert found.stopped == 1 and found.added.tolist() == [0, 30, 0, 0]


def test_an_estimate_knows_only_jobs_that_have_ended() -> None:
    jobs = made([(0, 50, 1), (10, 30, 1), (45, 5, 1), (60, 5, 1)])
    found = simulation.simulate(jobs, policies.rule_of("qssf", jobs, 1))
    assert found.guess.tolist() == [engine.PRIOR_S, engine.PRIOR_S, 30.0, pytest.approx((50 + 30 + 5) / 3)]
    early = simulation.simulate(jobs, policies.rule_of("leaky", jobs, 1))
    assert early.guess[1] == 40.0  # the control knows its own duration, too


def test_vcs_have_queues_of_their_own() -> None:
    jobs = made([(0, 50, 4), (1, 50, 4), (2, 5, 4)], nodes=(1, 1), vc=[0, 0, 1])
    found = simulation.simulate(jobs, policies.rule_of("fifo", jobs, 1), recorded=True)
    assert found.first.tolist() == [0, 50, 2] and found.segments[:, 1].tolist() == [1, 0, 0]  # as they end


def test_the_audit_sees_what_is_wrong() -> None:
    jobs = made([(0, 10, 4), (0, 10, 4)], nodes=(2,))
    good = simulation.simulate(jobs, policies.rule_of("fifo", jobs, 1), recorded=True)
    twice = replace(good, segments=good.segments * np.array([1, 0, 1]))
    assert {name for name, holds, _ in audit.audit(jobs, twice) if not holds} == {"no_gpu_twice"}
    lost = replace(good, first=np.array([0.0, -1.0]))
    assert "no_job_lost" in {name for name, holds, _ in audit.audit(jobs, lost) if not holds}


def test_lightgbm_learns_from_ended_jobs_alone() -> None:
    pytest.importorskip("lightgbm", reason="extra helios2021 (type: python3 -m tools.setup extras helios2021)")
    forest = importlib.import_module("suite_programs.forest")
    jobs = traces.read_slice()
    ended = simulation.simulate(jobs, policies.rule_of("fifo", jobs, 1)).end
    found = forest.predictions(jobs, ended, 1)
    cut = jobs.submit[0] + np.ptp(jobs.submit) / 2
    other = replace(jobs, duration=np.where(ended > cut, 1.0, jobs.duration))
    early = jobs.submit <= cut
    assert (found > 0).sum() > 1000 and np.array_equal(found[early], forest.predictions(other, ended, 1)[early])


@pytest.mark.parametrize(("policy", "expected"), [("fifo", 16534), ("service", 5899), ("fewest", 5896), ("qssf", 7153)])
def test_the_slice_of_venus(policy: str, expected: int) -> None:
    jobs = traces.read_slice()
    found = simulation.simulate(jobs, policies.rule_of(policy, jobs, 1))
    assert jobs.count == 1867 and round(float((found.end - jobs.submit).mean())) == expected


def test_an_unknown_policy_is_named() -> None:
    with pytest.raises(SpecError, match="options.policy: 'lifo' is none of fifo, sjf"):
        policies.rule_of("lifo", made([(0, 1, 1)]), 1)


@pytest.mark.parametrize("policy", ["fifo", "qssf"])
def test_a_dispatcher_in_virtual_time_does_what_the_simulation_says(policy: str, tmp_path: Path) -> None:
    case = case_from(
        {
            "program": "own",
            "entry": "dispatcher",
            "suite": "helios2021",
            "experiment": "dispatch",
            "arm": policy,
            "transport": "tcp",
            "fabric": {"name": "simulated", "costs": "stated", "messages": "free"},
            "ranks": 9,
            "iterations": 1,
            "warmup": 0,
            "options": {"policy": policy, "jobs": 24, "slept": 1},
        }
    )
    made = Predictor(tmp_path).predict(PlannedLaunch(case, 0, 3, 0, str(PROGRAMS), 0))
    rows = made.samples.to_pandas()
    ours, simulated = (
        float(rows[rows["event"] == name]["value"].iloc[0]) for name in ("dispatched_jct", "simulated_jct")
    )
    assert ours == pytest.approx(simulated, rel=0.02) and all(check["passed"] for check in made.checks)
