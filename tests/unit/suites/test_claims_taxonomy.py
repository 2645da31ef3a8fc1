"""The suite taxonomy: rows as published, the delay formulas, schemes as messages between threads, and schedules against
work and depth."""

from __future__ import annotations

import runpy
import threading
from collections import Counter, defaultdict
from pathlib import Path
from queue import Queue
from typing import Any

import numpy as np
import pytest
import yaml

from scaleproof.claims.arithmetic import Published
from scaleproof.claims.claims_yaml import load_claims, load_published
from scaleproof.claims.judge import judge_suite
from scaleproof.claims.launch_pool import matches
from scaleproof.claims.metrics import Metric
from scaleproof.claims.suite_metrics import load_models
from scaleproof.core.record_schema import RankNetwork
from scaleproof.record.store import Store
from scaleproof.spec.suite import Suite
from scaleproof.spec.tags import AXES, NONE
from scaleproof.spec.tags import SCHEMES as TAGGED
from scaleproof.transports.contract import Done, Traffic
from tests.unit.claims.claims_samples import record, samples
from tests.unit.claims.made_up_launches import judged, with_value

ROOT = Path(__file__).resolve().parents[3]
SUITE = "taxonomy"
MODELS_FILE = ROOT / "suites" / "taxonomy" / "models" / "__init__.py"
MODELS = vars(load_models(MODELS_FILE))
PROGRAM = runpy.run_path(str(ROOT / "suites" / "taxonomy" / "programs" / "schemes.py"))
DELAYS, SCHEMES = MODELS["DELAYS"], PROGRAM["SCHEMES"]
OWN = {
    "program": "own",
    "suite": "taxonomy",
    "experiment": "delays",
    "entry": "delays",
    "arm": "a",
    "transport": "tcp",
    "fabric": "netns",
    "fabric.link_mbit": 8,
}


def test_rows_are_those_of_the_surveys(suite: Suite) -> None:
    rows = load_published(suite.folder)
    assert Counter(row.provenance for row in rows.values()) == {"paper": 16, "secondary": 6}
    assert sum(row.gate for row in rows.values()) == 12
    assert [claim.form.id for claim in load_claims(suite) if claim.row] == list(rows)


def test_without_launches_arithmetic_alone_is_judged(suite: Suite, tmp_path: Path) -> None:
    results = {result.id.removeprefix("taxonomy."): result for result in judge_suite(suite, "smoke", Store(tmp_path))}
    assert {name for name, result in results.items() if result.verdict == "reproduced"} == {
        "bennun.wd.bound",
        "own.naive_worst",
    }
    assert results["langer.tau"].verdict == "not runnable here"
    assert {result.verdict for result in results.values() if result.kind == "context"} == {None}
    assert results["langer.fig14.size.vgga"].ours == pytest.approx(506.8, abs=0.05)


def test_schemes_are_the_same_in_the_formulas_the_program_the_tags_and_the_arms(suite: Suite) -> None:
    assert set(DELAYS) == set(SCHEMES) == set(TAGGED)
    assert set(MODELS["SERVED"]) == set(PROGRAM["SERVED"])
    cases = suite.experiment("delays").size("smoke").cases
    schemes = [case.options["scheme"] for case in cases]  # type: ignore[union-attr]
    assert set(schemes) == set(DELAYS)
    assert {case.ranks - (scheme in MODELS["SERVED"]) for case, scheme in zip(cases, schemes, strict=True)} == {4}


def test_one_worker_has_nothing_to_reduce_and_a_ring_carries_what_sharded_servers_carry() -> None:
    assert (
        DELAYS["ring"](1, 5, 7, 3)
        == DELAYS["recursive_doubling"](1, 5, 7, 3)
        == DELAYS["sharded_ps_k_eq_n_sync"](1, 5, 7, 3)
        == 3
    )
    assert DELAYS["ring"](8, 5, 7, 0) == DELAYS["sharded_ps_k_eq_n_sync"](8, 5, 7, 0) == 7 / 8 * (2 * 5 + 7)
    assert (
        DELAYS["naive_sync_ps"](4, 1, 0, 0) == 8
        and DELAYS["binomial_tree"](4, 1, 0, 0) == 6
        and DELAYS["async_all_workers"](4, 1, 0, 0) == 4
    )


def test_the_tags_of_papers_use_the_same_axes(suite: Suite) -> None:
    papers = yaml.safe_load((suite.folder / "papers.yaml").read_text())
    assert {"das2016", "xue2019", "awan2019", "zou2017", "jin2016_gossip"} <= set(papers)
    for name, tags in papers.items():
        assert [axis for axis in tags if axis not in ("origin", "origin_extra", "detail")] == list(AXES), name
        for axis, values in tags.items():
            assert axis not in AXES or axis == "transport" or set(values) <= {*AXES[axis], NONE}, (name, axis)


class Mail:
    """Messages between threads, in order per pair; a receive completes when it is waited for."""

    def __init__(self, rank: int, boxes: defaultdict[tuple[int, int], Queue[np.ndarray]]) -> None:
        self.rank, self.boxes, self.traffic = rank, boxes, Traffic()

    def send(self, buffer: np.ndarray, peer: int) -> Done:
        self.traffic.count(buffer.nbytes)
        self.boxes[self.rank, peer].put(buffer.copy())
        return Done()

    def recv(self, buffer: np.ndarray, peer: int) -> Any:
        box = self.boxes[peer, self.rank]

        class Arriving:
            arrived = False

            def test(self) -> bool:
                if not self.arrived and not box.empty():
                    self.wait()
                return self.arrived

            def wait(self) -> None:
                np.copyto(buffer, box.get(timeout=10))
                self.arrived = True

        return Arriving()


@pytest.mark.parametrize("scheme", sorted(SCHEMES))
@pytest.mark.parametrize("workers", [2, 4, 8])
def test_every_scheme_leaves_everybody_with_the_steps_that_it_promises(scheme: str, workers: int) -> None:
    boxes: defaultdict[tuple[int, int], Queue[np.ndarray]] = defaultdict(Queue)
    ranks = workers + (scheme in PROGRAM["SERVED"])
    for pair in ((source, destination) for source in range(ranks) for destination in range(ranks)):
        _ = boxes[pair]
    parts = [
        PROGRAM["Exchange"](
            Mail(rank, boxes),
            workers,
            24,
            lambda parameters, gradient: np.subtract(parameters, gradient, out=parameters),
        )
        for rank in range(ranks)
    ]
    for rank, part in enumerate(parts):
        part.gradient.fill(rank + 1)
    threads = [threading.Thread(target=SCHEMES[scheme], args=(part,), daemon=True) for part in parts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()
    rounds, everyone = PROGRAM["ROUNDS"].get(scheme, 1), sum(range(1, workers + 1))
    if scheme.startswith("async"):
        taking_part = [0] if scheme == "async_per_worker" else range(workers)
        total = rounds * sum(rank + 1 for rank in taking_part)
        assert (parts[workers].parameters == -total).all(), "the server has the steps of all"
        for rank in taking_part:
            (value,) = set(parts[rank].parameters.tolist())
            assert rounds * (rank + 1) <= -value <= total, "a worker has at least its own"
    else:
        assert all((part.parameters == -everyone).all() for part in parts)
    if scheme in ("ring", "sharded_ps_k_eq_n_sync"):
        assert {part.transport.traffic.nbytes for part in parts} == {2 * (workers - 1) * 24 * 4 // workers}


def test_an_asynchronous_server_serves_whoever_comes_first() -> None:
    boxes: defaultdict[tuple[int, int], Queue[np.ndarray]] = defaultdict(Queue)
    server = PROGRAM["Exchange"](
        Mail(2, boxes), 2, 8, lambda parameters, gradient: np.add(parameters, gradient, parameters)
    )
    for worker in range(2):
        _ = boxes[worker, 2], boxes[2, worker]
    thread = threading.Thread(target=SCHEMES["async_all_workers"], args=(server,), daemon=True)
    thread.start()
    for number in range(PROGRAM["ROUNDS"]["async_all_workers"]):
        boxes[1, 2].put(np.ones(8, np.float32))
        assert boxes[2, 1].get(timeout=10)[0] == number + 1, "worker 0 is silent, and worker 1 is served"
    for _number in range(PROGRAM["ROUNDS"]["async_all_workers"]):
        boxes[0, 2].put(np.ones(8, np.float32))
    thread.join(10)
    assert not thread.is_alive()


def exchange(scheme: str, ranks: int, *lengths_ms: float, value: float = 1) -> tuple[Any, Any]:
    case = {**OWN, "ranks": ranks, "sizes": [1_000_000], "options": {"scheme": scheme, "slept": 1}}
    rows = [
        (rank, "delay", number, rank, rank + length, 1_500_000, value)
        for rank in range(ranks)
        for number, length in enumerate(lengths_ms)
    ]

    def counters(sent: int) -> dict[str, dict[str, int]]:
        return {"eth0": {"tx_bytes": sent, "rx_bytes": 0, "tx_packets": 0, "rx_packets": 0}}

    moved = round(len(lengths_ms) * value * 1_500_000)
    network = [
        RankNetwork(rank=rank, namespace=f"node{rank}", asked_bytes=0, before=counters(0), after=counters(moved))
        for rank in range(ranks)
    ]
    return record(case, network=network), samples(*rows, (0, "reduce", 0, 0, 10, 0), (0, "update", 0, 0, 20, 0))


def test_a_delay_is_held_against_the_formula_with_the_payload_rate_of_the_link(metrics: dict[str, Metric]) -> None:
    delay, over, traffic, bound = (
        metrics[name].launch for name in ("delay_s", "delay_over_bound", "traffic_ratio", "all_reduce_over_bound")
    )
    assert delay and over and traffic and bound
    launch = exchange("ring", 4, 1997, 1797, 2197)
    transmit = (
        1514 / 1448 - 2 * 1514 / 1e6
    )  # 1 MB at 8 Mbit/s: of each frame 1448 bytes are payload; two frames at once
    assert delay(*launch) == pytest.approx(2.0)
    assert over(*launch) == pytest.approx(2.0 / (1.5 * transmit + 0.75 * 0.01 + 0.02))
    assert (traffic(*launch), bound(*launch)) == (pytest.approx(1), pytest.approx(2 / 0.75 / transmit))
    served = exchange("async_all_workers", 5, 9996, value=5)
    assert delay(*served) == pytest.approx(2.0)
    assert over(*served) == pytest.approx(2.0 / (4 * transmit + 0.02))


def test_a_schedule_that_wastes_a_worker_is_outside() -> None:
    chain = [(1.0, []), (1.0, [0]), (1.0, [0]), (1.0, [1, 2])]
    assert MODELS["longest_path"](chain) == 3
    assert [MODELS["greedy_schedule"](chain, workers) for workers in (1, 2, 4)] == [4, 3, 3]
    schedules = MODELS["Schedules"](workloads=["cd_dnn"], workers=4)
    assert MODELS["schedules_outside"](schedules, Published()) == 0
    slow = vars(load_models(MODELS_FILE))
    slow["schedules_outside"].__globals__["greedy_schedule"] = lambda operations, workers: (
        3 * sum(cost for cost, _ in operations)
    )
    assert slow["schedules_outside"](schedules, Published()) == 4


@pytest.mark.parametrize("size", ["smoke", "small", "full"])
def test_every_claim_has_launches_on_all_its_sides(suite: Suite, size: str) -> None:
    chosen = suite.experiment("delays").size(size)
    assert chosen.launches >= 6
    for claim in load_claims(suite):
        form = claim.form
        for side in [form.select, form.against, *form.arms] if form.experiment else []:
            assert side is None or not side or any(matches(case, side) for case in chosen.cases), f"{form.id}: {side}"


def test_a_lower_bound_is_judged_in_every_case_by_itself(suite: Suite) -> None:
    bounds = [claim.form for claim in load_claims(suite) if claim.form.rule and claim.form.rule.name == "at_least"]
    assert len(bounds) >= 9 and {form.over for form in bounds} == {("arm", "ranks")}


def test_a_bound_that_no_exchange_can_beat_is_a_check_and_fails_where_one_does(suite: Suite) -> None:
    bounds = [claim.form for claim in load_claims(suite) if claim.form.rule and claim.form.rule.name == "at_least"]
    assert {form.kind for form in bounds} == {"check"}
    for name in ("taxonomy.langer.delay.ring", "taxonomy.bennun.allreduce.bound"):
        assert judged(name, with_value(name, 1.05)).verdict == "holds"
        assert judged(name, with_value(name, 0.95)).verdict == "fails"


def test_every_metric_has_its_page(metrics: dict[str, Metric]) -> None:
    for metric in metrics.values():
        assert (ROOT / metric.page).read_text().startswith(f"# {metric.name}"), metric.page
