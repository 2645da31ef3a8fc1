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
NAMES = ("jobs", "simulation", "policies", "audit", "traces", "dispatcher")
load_entry(PROGRAMS, "scheduling")
jobs, simulation, policies, audit, traces, dispatcher = (
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
    assert [name for name, holds, _ in audit.audit(jobs, found, backfill) if not holds] == []


def placed(free: list[int], gpus: int, placement: str) -> dict[int, int] | None:
    """Which GPUs of which nodes a job gets of those that are free; None: it does not fit."""
    if placement == "fungible":
        free = [sum(free)]
        return {0: gpus} if gpus <= free[0] else None
    whole, rest = divmod(gpus, PER_NODE)
    got = dict.fromkeys([at for at, left in enumerate(free) if left == PER_NODE][:whole], PER_NODE)
    rooms = [(left, node) for node, left in enumerate(free) if node not in got and left >= rest]
    if len(got) < whole or (rest and not rooms):
        return None
    if rest:
        got[min(rooms)[1] if placement == "consolidate" else min(node for _, node in rooms)] = rest
    return got


def slowly(jobs: Any, key: np.ndarray, backfill: bool, placement: str) -> np.ndarray:
    """When each job starts, second by second (jobs,)."""
    start = np.full(jobs.count, -1.0)
    free = [int(jobs.pools.gpus)] if placement == "fungible" else [PER_NODE] * int(jobs.pools.nodes[0])
    running: list[tuple[float, dict[int, int]]] = []
    for now in range(2000):
        for ended in [each for each in running if each[0] <= now]:
            running.remove(ended)
            for node, count in ended[1].items():
                free[node] += count
        waiting = [job for job in range(jobs.count) if jobs.submit[job] <= now and start[job] < 0]
        for job in sorted(waiting, key=lambda job: (key[job], job)):
            got = placed(free, int(jobs.gpus[job]), placement)
            if got is not None:
                start[job] = now
                for node, count in got.items():
                    free[node] -= count
                running.append((now + jobs.duration[job], got))
            elif not backfill:
                break
    return start


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ROWS, st.sampled_from(["fifo", "sjf", "service", "fewest"]), st.booleans(), st.sampled_from(PLACEMENTS))
def test_a_cluster_starts_jobs_when_a_slow_loop_does(
    rows: list[tuple[int, int, int]], policy: str, backfill: bool, placement: str
) -> None:
    jobs = made(rows, nodes=(4,))
    rule = policies.rule_of(policy, jobs, 1)
    found = simulation.simulate(jobs, rule, placement, backfill)
    assert found.first.tolist() == slowly(jobs, rule.given, backfill, placement).tolist()


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


def test_srtf_goes_on_past_a_job_that_does_not_fit_where_jobs_may_pass() -> None:
    jobs = made([(0, 20, 4), (1, 30, 8), (2, 60, 4)], nodes=(2,))
    rule = policies.rule_of("srtf", jobs, 1)
    blocking = simulation.simulate(jobs, rule)
    passing = simulation.simulate(jobs, rule, backfill=True)
    assert blocking.first.tolist() == [0, 20, 50] and blocking.stopped == 0
    assert passing.first.tolist() == [0, 20, 2] and passing.stopped == 1  # the third is stopped when the second fits
    assert passing.end.tolist() == [20, 50, 50 + 42 + 30]


def test_an_estimate_knows_only_jobs_that_have_ended() -> None:
    jobs = made([(0, 50, 1), (10, 30, 1), (45, 5, 1), (60, 5, 1)])
    found = simulation.simulate(jobs, policies.rule_of("qssf", jobs, 1))
    assert found.guess.tolist() == [simulation.PRIOR_S, simulation.PRIOR_S, 30.0, pytest.approx((50 + 30 + 5) / 3)]
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
    late = replace(good, first=np.array([0.0, 3.0]), end=np.array([10.0, 13.0]))
    assert "starts_at_events" in {name for name, holds, _ in audit.audit(jobs, late) if not holds}
    passed = replace(good, blocked=4.0)
    assert {name for name, holds, _ in audit.audit(jobs, passed, True) if not holds} == {"work_conserving"}
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
    with pytest.raises(SpecError, match="options.policy: unknown value 'lifo'; did you mean 'fifo'"):
        policies.rule_of("lifo", made([(0, 1, 1)]), 1)


def test_checks_of_a_dispatcher_see_what_is_wrong() -> None:
    jobs = made([(0, 1, 2), (0, 2, 1)])
    rows = ((0, 1, 0.0, 1.0, 1.0), (0, 2, 0.0, 1.0, 1.0), (1, 1, 1.0, 3.0, 2.0))
    good = [dispatcher.Run(*row) for row in rows]

    def wrong(runs: list[Any]) -> set[str]:
        return {name for name, holds, _ in dispatcher.found_wrong(jobs, runs) if not holds}

    assert wrong(good) == set()
    assert wrong(good[1:]) == {"no_job_lost"}
    assert wrong([*good[:2], replace(good[2], given=0.5)]) == {"no_gpu_twice"}
    assert wrong([*good[:2], replace(good[2], slept=1.0)]) == {"whole_duration"}


def test_a_dispatcher_expects_of_its_first_jobs_what_is_scaled_like_their_durations() -> None:
    jobs, prior = dispatcher.scaled_jobs(32, 8, 3)
    assert jobs.duration.min() == pytest.approx(0.03) and jobs.duration.max() == pytest.approx(0.4)
    assert 0.03 <= prior <= 0.4 and len(set(np.round(np.diff(jobs.submit), 9))) == 1  # submissions are even
    rule = policies.rule_of("qssf", jobs, 3, "fungible", simulation.Rolling(prior))
    found = simulation.simulate(jobs, rule, "fungible")
    assert found.guess[0] == prior and found.guess.max() <= 0.4


@pytest.mark.parametrize("policy", ["fifo", "qssf", "sjf"])
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
