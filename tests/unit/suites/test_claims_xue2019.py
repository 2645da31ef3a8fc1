"""The suite xue2019: rows as published, sizes of its models, metrics on records made by hand, and claims that find
launches on all their sides."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from scaleproof.claims.claims_yaml import load_claims, load_published
from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.judge import judge_suite
from scaleproof.claims.launch_pool import matches
from scaleproof.claims.metrics import Metric
from scaleproof.core.record_schema import RankNetwork, RankStatus, Record
from scaleproof.programs.own import load_entry
from scaleproof.record.store import Store
from scaleproof.report.headlines.load import load_headlines
from scaleproof.spec.plan import plan
from scaleproof.spec.suite import Suite
from tests.unit.claims.claims_samples import TRAIN, record, samples, step

ROOT = Path(__file__).resolve().parents[3]
SUITE = "xue2019"
KIB, MIB = 1 << 10, 1 << 20
NOT_RUN = {("xue2019.own.shaped", "smoke")}
"""Claims of our own whose launches a size leaves out: guests with a slow link."""
OWN = {
    "program": "own",
    "suite": "xue2019",
    "experiment": "micro",
    "entry": "send_reduce",
    "ranks": 2,
    "sizes": [4 * KIB, MIB],
}


def with_facts(case: dict[str, Any], *facts: dict[str, Any], plan_index: int = 0) -> Record:
    ranks = [
        RankStatus(rank=rank, pid=1, exit_code=0, signal=None, status="ok", step=1, operation="end", facts=own)
        for rank, own in enumerate(facts)
    ]
    return record(case, plan_index, ranks=ranks)


def sends(small_ms: float, large_ms: float) -> list[tuple[Any, ...]]:
    return [
        (0, "send_reduce", number, 0, time, nbytes)
        for nbytes, time in ((4 * KIB, small_ms), (MIB, large_ms))
        for number in range(3)
    ]


def test_rows_are_those_of_their_sources_and_five_of_them_may_decide(suite: Suite) -> None:
    rows = load_published(suite.folder)
    assert Counter(row.provenance for row in rows.values()) == {
        "memory_medium": 19,
        "memory_high": 5,
        "memory_low": 8,
        "paper": 5,
        "secondary": 1,
    }
    gated = {name: row.value for name, row in rows.items() if row.gate}
    assert gated == {
        "xue2019.max.vs_grpc_tcp": 25,
        "xue2019.max.vs_grpc_rdma": 169,
        "xue2019.ctx.hkust_gdr.vs_grpc": 2.43,
        "xue2019.ctx.hkust_gdr.vs_copy_rdma": 1.21,
        "xue2019.ctx.ustc_rdma.vs_grpc": 6,
    }


def test_without_launches_recalled_rows_stay_unverified_and_related_work_is_not_runnable_here(
    suite: Suite, tmp_path: Path
) -> None:
    results = {result.id: result for result in judge_suite(suite, "smoke", Store(tmp_path))}
    recalled = [result for result in results.values() if result.provenance and result.provenance.startswith("memory")]
    assert len(recalled) == 32 and {result.verdict for result in recalled} == {"unverified"}
    assert {results[name].verdict for name in results if ".ctx." in name} == {"not runnable here"}
    assert "GPUDirect" in results["xue2019.ctx.hkust_gdr.vs_grpc"].reason
    assert results["xue2019.servers"].verdict is None


def test_sizes_and_numbers_of_tensors_of_all_six_models_are_the_published_ones(suite: Suite, tmp_path: Path) -> None:
    results = {
        result.id.removeprefix("xue2019."): result
        for result in judge_suite(suite, "smoke", Store(tmp_path))
        if result.kind == "consistency"
    }
    assert len(results) == 12
    for name, result in results.items():
        assert result.published is not None and result.ours == pytest.approx(result.published, abs=0.005), name
    assert results["size.inceptionv3"].ours == pytest.approx(24_353_332 * 4 / MIB)


def test_costs_are_those_of_both_ends_over_the_tensors_sent(metrics: dict[str, Metric]) -> None:
    sender = {"tensors": 4, "copies": 4, "messages": 4, "round_trips": 0, "processor_s": 0.2}
    receiver = {"tensors": 0, "copies": 4, "messages": 0, "round_trips": 4, "processor_s": 0.6}
    launch = with_facts({**OWN, "arm": "copy_shm"}, {"costs": {str(MIB): sender}}, {"costs": {str(MIB): receiver}})
    names = ("copies_per_tensor", "messages_per_tensor", "round_trips_per_tensor", "processor_s_per_tensor")
    values = [metrics[name].by_size(launch, samples()) for name in names]
    assert [by_size[MIB] for by_size in values] == [2.0, 1.0, 1.0, pytest.approx(0.2)]
    assert {by_size[4 * KIB] for by_size in values} == {None}
    messages = with_facts(
        {**OWN, "arm": "grpc", "options": {"mechanism": "messages"}},
        {"costs": {str(MIB): sender}},
        {"costs": {str(MIB): receiver}},
    )
    assert metrics["copies_per_tensor"].by_size(messages, samples())[MIB] is None


def test_speedups_of_a_pair_are_taken_at_the_size_where_they_are_least_and_largest(metrics: dict[str, Metric]) -> None:
    ours = Launch(record({**OWN, "arm": "zero_copy_shm"}), samples(*sends(1, 10)))
    base = Launch(record({**OWN, "arm": "rpc_shm"}), samples(*sends(3, 20)))
    least, largest = metrics["least_speedup"].pair, metrics["largest_speedup"].pair
    assert least is not None and largest is not None
    assert (least(ours, base, None), largest(ours, base, None)) == (pytest.approx(2), pytest.approx(3))


def test_the_largest_gain_compares_only_what_both_arms_trained(metrics: dict[str, Metric]) -> None:
    def trained(arm: str, workload: str, length: float) -> Launch:
        case = {**TRAIN, "arm": arm, "workload": workload}
        moments = [(rank, event, 0, at, at) for rank in range(2) for event, at in (("start", 0), ("end", 2 * length))]
        rows = [
            row
            for rank in range(2)
            for number in range(2)
            for row in step(rank, number, number * length, length=length)
        ]
        return Launch(record(case), samples(*moments, *rows))

    launches = [
        trained("zero_copy", "fcn5", 100),
        trained("rpc", "fcn5", 269),
        trained("zero_copy", "lstm", 100),
        trained("rpc", "lstm", 120),
    ]
    launches.append(trained("rpc", "vgg16", 900))
    gain = metrics["largest_throughput_gain"].block
    assert gain is not None and gain(launches, None) == pytest.approx(169)
    assert gain(launches[-1:], None) is None
    assert gain(launches[2:4], 0.25) == pytest.approx(20), "the rule lets the floor move it; set to 0 it would refute"


def test_the_share_of_copied_sends_is_that_of_the_first_step_and_of_all_later_ones(metrics: dict[str, Metric]) -> None:
    rows: list[tuple[Any, ...]] = [
        (0, "born_placed", number, 0, 1, 0, placed) for number, placed in enumerate((0, 6, 6))
    ]
    rows += [(0, "born_copied", number, 0, 1, 0, copied, number == 0) for number, copied in enumerate((8, 2, 2))]
    first, later = (metrics[name].launch for name in ("copied_share_first", "copied_share_later"))
    assert first is not None and later is not None
    launch = record({**OWN, "arm": "fcn5"})
    assert (first(launch, samples(*rows)), later(launch, samples(*rows))) == (1.0, 0.25)
    assert first(launch, samples()) is None


def test_a_gain_is_one_of_the_same_launch(metrics: dict[str, Metric]) -> None:
    rows = samples(
        (0, "minibatch_rpc", 0, 0, 30), (0, "minibatch_zero_copy", 0, 30, 40), (0, "minibatch_copy", 0, 40, 60)
    )
    gains = [metrics[name].launch for name in ("gain_over_rpc", "gain_over_copy")]
    assert [gain and gain(record({**OWN, "arm": "fcn5"}), rows) for gain in gains] == [3.0, 2.0]


@pytest.mark.parametrize("size", ["smoke", "small", "full"])
def test_every_claim_of_our_own_has_launches_on_all_its_sides(suite: Suite, size: str) -> None:
    for claim in load_claims(suite):
        form = claim.form
        if form.origin != "own" or form.experiment is None or (form.id, size) in NOT_RUN:
            continue
        chosen = suite.experiment(form.experiment).size(size)
        assert chosen.launches >= 6
        sides = [
            *({**form.select, **arm} for arm in form.arms),
            form.against,
            form.control.select if form.control else None,
        ]
        sides += [] if form.arms else [form.select]
        for side in sides:
            assert side is None or any(matches(case, side) for case in chosen.cases), f"{form.id}: {side}"
            assert (
                form.nbytes is None
                or side is None
                or any(matches(case, side) and form.nbytes in case.value("sizes") for case in chosen.cases)
            ), form.id


def test_tensorflow_is_tuned_over_the_grid_and_all_that_was_tried_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    program = load_entry(ROOT / "suites" / "xue2019" / "programs", "tensorflow_send_reduce")
    seconds = {pieces: [9.0, 1 / pieces, 5.0] if pieces < 8 else [9.0, 7.0, 8.0] for pieces in program.PIECES}
    requested = {pieces: iter(times) for pieces, times in seconds.items()}
    monkeypatch.setattr(program, "_request_s", lambda pieces: next(requested[pieces]))
    monkeypatch.setattr(program, "_put", lambda *of_size: None)
    monkeypatch.setattr(program, "_meet", lambda *place: None)
    context: Any = SimpleNamespace(rank=1, at=lambda *place: None, facts={"tuning": {"tried": {}, "pieces": {}}})
    assert program._tuned(context, {pieces: pieces for pieces in program.PIECES}, 4096) == 6
    tuning = context.facts["tuning"]
    assert tuning["pieces"] == {"4096": 6}
    assert tuning["tried"]["4096"] == [{"pieces": pieces, "s": min(times)} for pieces, times in seconds.items()]
    assert len(tuning["tried"]["4096"]) >= 8, "as many settings as our gRPC service had"


def test_packets_of_a_tensor_are_those_of_both_ranks_own_interfaces(metrics: dict[str, Metric]) -> None:
    metric = metrics["packets_per_tensor"].size
    assert metric is not None
    case = {**OWN, "arm": "a", "transport": "rdma", "fabric": "guests", "options": {"mechanism": "zero_copy"}}
    costs = [{"costs": {"4096": {"tensors": 10 * (1 - rank), "packets": 60 - 20 * rank}}} for rank in range(2)]
    made = with_facts(case, *costs)

    def on(*namespaces: str) -> Record:
        parts = [
            RankNetwork(rank=rank, namespace=name, asked_bytes=0, before={}, after={})
            for rank, name in enumerate(namespaces)
        ]
        return made.model_copy(update={"network": parts})

    assert metric(on("a", "b"), samples(), 4 * KIB) == pytest.approx(10)
    assert metric(on("a", "a"), samples(), 4 * KIB) is None
    del costs[0]["costs"]["4096"]["packets"]
    assert metric(on("a", "b"), samples(), 4 * KIB) is None


def test_a_figure_shows_the_gap_to_one_write_layer_by_layer(suite: Suite) -> None:
    declared = load_headlines(suite)
    assert declared is not None
    figure = next(figure for figure in declared.figures if figure.kind == "sizes")
    layers = ["tensorflow_grpc", "grpc", "rpc_shm", "copy_shm"]
    assert [series.select["arm"] for series in figure.series] == layers
    assert all(series.against == {"arm": "zero_copy_shm"} for series in figure.series)
    sizes = {launch.case.arm: set(launch.case.value("sizes")) for launch in plan(suite, "micro", "smoke")}
    assert {4 * KIB, 64 * MIB} <= set.intersection(*(sizes[arm] for arm in [*layers, "zero_copy_shm"]))
