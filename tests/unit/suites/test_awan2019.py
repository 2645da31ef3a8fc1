"""Programs of suite awan2019: kinds of pointers and their cache, reduction in device memory, metrics over the arms of a
repetition."""

from __future__ import annotations

import ctypes
import importlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from scaleproof.claims import made_up
from scaleproof.claims.claims_yaml import load_claims, load_published
from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.suite_metrics import load_models, suite_metrics
from scaleproof.core.context import RankContext
from scaleproof.core.record_schema import RankNetwork
from scaleproof.programs.own import load_entry
from scaleproof.rank.unsupervised_ranks import run_ranks
from scaleproof.spec import registry
from scaleproof.spec.case import CollectiveCase
from scaleproof.spec.plan import PlannedLaunch
from scaleproof.spec.suite import load_suite
from tests.short_form import case_from, ring_case
from tests.unit.claims.claims_samples import TRAIN, record, samples
from tests.unit.claims.made_up_launches import judged

FOLDER = Path(__file__).parents[3] / "suites" / "awan2019"
PROGRAMS = FOLDER / "programs"


def module(name: str) -> Any:
    load_entry(PROGRAMS, "pointer_cache")
    return importlib.import_module(f"suite_programs.{name}")


class Driver:
    """A driver with known allocations that counts its queries."""

    def __init__(self, *allocations: tuple[int, int, str]) -> None:
        self.allocations, self.asked = list(allocations), 0

    def query(self, address: int, nbytes: int) -> Any:
        self.asked += 1
        ranges = [allocation for allocation in self.allocations if allocation[0] <= address < allocation[1]]
        return module("kinds").Allocation(*(ranges[0] if ranges else (address, address + nbytes, "host")))


def test_an_allocation_is_asked_about_once_whatever_part_of_it_travels():
    driver = Driver((1000, 2000, "device"))
    kinds = module("kinds").Kinds(driver, cached=True)
    assert [kinds.of(address, 100) for address in (1000, 1500, 1900, 1500)] == ["device"] * 4
    assert driver.asked == kinds.queries == 1


def test_without_the_cache_every_message_asks():
    kinds = module("kinds").Kinds(driver := Driver((1000, 2000, "device")), cached=False)
    assert [kinds.of(1000, 100) for _ in range(3)] == ["device"] * 3
    assert driver.asked == 3


def test_what_was_freed_is_asked_about_again_and_may_be_another_kind():
    kinds = module("kinds").Kinds(driver := Driver((1000, 2000, "device"), (3000, 4000, "device")), cached=True)
    assert [kinds.of(1000, 8), kinds.of(3000, 8)] == ["device", "device"]
    driver.allocations.pop(0)
    kinds.freed(1000, 1000)
    assert [kinds.of(1200, 8), kinds.of(3500, 8)] == ["host", "device"]
    assert driver.asked == 3


def test_bytes_beyond_what_is_known_are_asked_about():
    kinds = module("kinds").Kinds(driver := Driver(), cached=True)
    assert [kinds.of(*part) for part in ((1000, 100), (1050, 100), (1000, 150), (1050, 100), (900, 50))] == ["host"] * 5
    assert driver.asked == 4  # (1050, 100) replaces (1000, 100), then (1000, 150) covers it


def test_the_cuda_driver_is_read_as_it_answers():
    answers = {(2, 5000): 2, (11, 5000): 4096, (12, 5000): 8192}  # memory type, start and size of the range

    def attribute(value: Any, number: int, address: ctypes.c_uint64) -> int:
        answer = answers.get((number, address.value))
        if answer is not None:
            ctypes.cast(value, ctypes.POINTER(ctypes.c_uint64))[0] = answer
        return 0 if answer is not None else 1  # CUDA_ERROR_INVALID_VALUE for memory that it does not know

    driver = module("kinds").CudaDriver(SimpleNamespace(cuPointerGetAttribute=attribute))
    allocation = driver.query(5000, 16)
    assert (allocation.start, allocation.stop, allocation.kind) == (4096, 4096 + 8192, "device")
    assert driver.query(77, 16).kind == "host"


class Device:
    """Memory that the host reaches only by copies."""

    def __init__(self, values: np.ndarray) -> None:
        self.values, self.size, self.moved = values, values.size, 0

    def fetch(self, start: int, stop: int) -> np.ndarray:
        self.moved += stop - start
        return self.values[start:stop].copy()

    def add(self, start: int, values: np.ndarray) -> None:
        self.moved += values.size
        self.values[start : start + values.size] += values

    def put(self, start: int, values: np.ndarray) -> None:
        self.moved += values.size
        self.values[start : start + values.size] = values


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_reduced_where_it_lies_is_the_sum_and_moves_what_a_ring_moves(ranks: int):
    case, size = ring_case(ranks=ranks), 31
    reduce = module("memories").reduce_where_it_lies

    def body(context: RankContext) -> None:
        transport = registry.load("transport", "tcp").connect(context)
        device = Device(np.arange(size, dtype=np.float32) * (context.rank + 1))
        reduce(transport, device, np.empty(size, np.float32))
        assert (device.values == np.arange(size) * ranks * (ranks + 1) / 2).all()
        assert device.moved <= 4 * (ranks - 1) * -(-size // ranks)
        transport.barrier()
        transport.close()

    assert run_ranks(case, body) == [""] * ranks


@pytest.mark.parametrize(
    ("entry", "options"), [("pointer_cache", {"driver": "cuda"}), ("device_reduce", {"device": "cuda"})]
)
def test_arms_for_a_gpu_say_that_they_need_one(entry: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module("pointer_cache"), "gpus", lambda: 0)
    program = load_entry(PROGRAMS, entry)
    if entry == "device_reduce":
        monkeypatch.setattr(program, "gpus", lambda: 0)
    case = case_from(
        {"suite": "t", "experiment": "t", "arm": "t", "program": "own", "entry": entry, "ranks": 2, "options": options}
    )
    reason, advice = program.obstacle(case)
    assert "no GPU" in reason and "libcuda" in advice
    emulated = case.model_copy(update={"options": {"driver": "emulated", "device": "emulated"}})
    assert program.obstacle(emulated) is None


def trained(arm: str, speed: float, workload: str = "mobilenet") -> Launch:
    """A launch whose only step of 8 samples on 2 ranks takes 8 / speed s."""
    fields = {
        "program": "train",
        "ranks": 2,
        "transport": "gloo",
        "strategy": "sync",
        "workload": workload,
        "minibatch": 8,
        "steps": 1,
    }
    case = case_from({"suite": "t", "experiment": "t", "arm": arm, **fields})
    end = round(8 / speed * 1e9)
    rows = [("step", rank, 0, 0, end, 0, False) for rank in (0, 1)]
    rows += [("start", rank, 0, 0, 0, 0, False) for rank in (0, 1)] + [
        ("end", rank, 0, end, end, 0, False) for rank in (0, 1)
    ]
    return Launch(_record(case), _samples(rows))


def reduced(arm: str, seconds: float) -> Launch:
    case = case_from(
        {
            "suite": "t",
            "experiment": "t",
            "arm": arm,
            "program": "collective",
            "ranks": 2,
            "transport": "gloo",
            "sizes": [8, 4096],
        }
    )
    rows = [
        ("all_reduce", rank, 0, 0, round(part * 1e9), nbytes, False)
        for rank in (0, 1)
        for nbytes, part in ((8, 1.0), (4096, seconds))
    ]
    return Launch(_record(case), _samples(rows))


def _record(case: Any) -> Any:
    return SimpleNamespace(case=case, ranks=[], clocks=[], clock_offsets={}, plan_index=0, excluded="")


def _samples(rows: list[tuple[Any, ...]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["event", "rank", "step", "start_ns", "end_ns", "nbytes", "warmup"]).assign(
        value=float("nan")
    )


def rank_correlation(block: list[Launch], floor: float | None = None) -> tuple[float, float, float]:
    """Its value, and the least and largest that the floor leaves open."""
    found = block_metric("allreduce_rank_correlation")(block, floor)
    return found.value, found.low, found.high


def block_metric(name: str) -> Any:
    metric = suite_metrics(FOLDER)[name].block
    assert metric is not None
    return metric


def test_every_network_counts_equally_whatever_number_of_arms_trained_it():
    wins, count = block_metric("no_grpc_wins"), block_metric("no_grpc_configurations")
    block = [trained("grpc_ps", 10), trained("grpc_mpi_ps", 30), trained("grpc_shm_ps", 40), trained("mpi", 99)]
    block += [trained("horovod_mpi", 20), trained("horovod_mpi", 11, "resnet50"), trained("grpc_ps", 10, "resnet50")]
    assert count(block, None) == 4
    assert wins(block, None).value == pytest.approx((1 / 3 + 1) / 2), "1 of 3 and 1 of 1, not 2 of 4"
    assert (wins([trained("mpi", 1)], None), count([trained("mpi", 1)], None)) == (None, None)
    beside = [*block, trained("tensorflow_mirrored", 99)]  # an all-reduce over gRPC belongs to neither class
    assert (wins(beside, None), count(beside, None)) == (wins(block, None), 4)


@pytest.mark.parametrize(
    ("floor", "won", "undecided"), [(None, 1.0, 0.0), (0.05, 1.0, 0.0), (0.22, 0.5, 0.5), (1.5, 0.0, 1.0)]
)
def test_a_configuration_is_won_beyond_the_noise_floor_only(floor: float | None, won: float, undecided: float):
    block = [trained("grpc_ps", 10), trained("horovod_mpi", 11)]
    block += [trained("grpc_ps", 10, "resnet50"), trained("horovod_mpi", 20, "resnet50")]
    share = block_metric("no_grpc_wins")(block, floor)
    assert (share.value, share.low, share.high - share.value) == (won, won, undecided)


@pytest.mark.parametrize(("speeds", "rho"), [((30, 20, 10), 1.0), ((10, 20, 30), -1.0), ((20, 30, 10), 0.5)])
def test_throughput_is_ranked_beside_the_all_reduce_at_its_largest_size(speeds: tuple[int, int, int], rho: float):
    block = [trained(arm, speed) for arm, speed in zip(("horovod_mpi", "mpi", "gloo"), speeds, strict=True)]
    block += [reduced("horovod_mpi_allreduce", 0.1), reduced("mpi_allreduce", 0.2), reduced("gloo_allreduce", 0.3)]
    correlation = rank_correlation
    assert correlation(block) == pytest.approx((rho, rho, rho))
    assert block_metric("allreduce_rank_correlation")(block[:-1], None) is None
    # Another network is ranked separately, in any order of launches; two members of it are too few.
    few = [trained("horovod_mpi", 1, "resnet50"), trained("mpi", 99, "resnet50")]
    assert correlation([*block, *few]) == correlation([*few, *block]) == pytest.approx((rho, rho, rho))
    more = [*few, trained("gloo", 100, "resnet50")]
    assert correlation([*block, *more]) == correlation([*more, *block]) == pytest.approx(((rho - 1) / 2,) * 3)


def test_arms_within_the_noise_floor_are_not_ranked_by_noise():
    block = [trained(arm, speed) for arm, speed in (("horovod_mpi", 30), ("mpi", 11), ("gloo", 10))]
    block += [reduced("horovod_mpi_allreduce", 0.1), reduced("mpi_allreduce", 0.33), reduced("gloo_allreduce", 0.3)]
    assert rank_correlation(block) == pytest.approx((0.5, 0.5, 0.5)), "two arms of almost the same speed swapped places"
    assert rank_correlation(block, 0.2) == pytest.approx((0.75, 0.5, 1)), (
        "of the two either may be ahead, on both sides"
    )
    assert rank_correlation(block, 5.0) == pytest.approx((0, -1, 1)), "nothing is known of any order"


@pytest.mark.parametrize(
    ("rates", "seconds", "floor", "verdict"),
    [
        ((10.4, 10.3, 10.2, 10.1), (0.34, 0.33, 0.32, 0.31), 0.22, "inconclusive"),
        ((10.4, 10.3, 10.2, 10.1), (0.31, 0.32, 0.33, 0.34), 0.22, "inconclusive"),
        ((15, 1.02, 1.01, 1.0), (0.1, 0.2, 0.4, 0.8), 0.22, "inconclusive"),  # 0.8, from 0.6 to 1
        ((10.4, 10.3, 10.2, 10.1), (0.34, 0.33, 0.32, 0.31), 0.001, "not reproduced"),
        ((8, 4, 2, 1), (0.1, 0.2, 0.4, 0.8), 0.22, "reproduced"),
        ((8, 4, 2, 1), (0.8, 0.4, 0.2, 0.1), 0.22, "not reproduced"),
    ],
)
def test_arms_tied_within_the_floor_neither_refute_nor_confirm_the_rank_correlation(
    rates: tuple[float, ...], seconds: tuple[float, ...], floor: float, verdict: str
) -> None:
    """One arm is far ahead on both sides; the others have the order of their all-reduces, or its reverse."""
    members = load_models(FOLDER / "models.py").MEMBERS
    rate_of = dict(zip(members, (30.0, *rates), strict=True))
    seconds_of = dict(zip(members.values(), (0.01, *seconds), strict=True))

    def made(launch: PlannedLaunch) -> made_up.MadeUp:
        case = launch.case
        if isinstance(case, CollectiveCase):
            call = made_up.Event(case.operation, 0.0, seconds_of[case.arm], nbytes=max(case.sizes))
            return made_up.events(call)
        return made_up.trained(case, rate_of.get(case.arm, 5.0))

    assert judged("awan2019.insight.allreduce", made, floor).verdict == verdict


def test_the_share_of_wins_has_the_arms_of_one_rank_as_its_control():
    claim = next(claim for claim in load_claims(load_suite(FOLDER)) if claim.form.id == "awan2019.insight.nogrpc")
    assert claim.form.control is not None and claim.form.control.select == {"ranks": 1, "program": "train"}


def test_every_row_of_the_paper_has_its_claim_and_those_that_gate_are_served_or_say_what_they_need():
    rows, claims = load_published(FOLDER), load_claims(load_suite(FOLDER))
    assert len(rows) == 40 and {claim.form.id for claim in claims if claim.row} == set(rows)
    for claim in claims:
        if claim.row and claim.row.gate:
            judged = claim.form.rule or claim.form.kind == "context"  # a row that calibrates predictions is shown
            assert (judged and claim.form.experiment) or claim.form.needs, claim.form.id


@pytest.mark.parametrize(
    ("servers", "path", "expected"), [(1, "socket", 6000 / 2), (2, "socket", None), (1, "shared memory", None)]
)
def test_bytes_of_a_single_server_are_those_of_the_interface(servers: int, path: str, expected: float | None) -> None:
    counters = {"tx_bytes": 100, "rx_bytes": 100, "tx_packets": 0, "rx_packets": 0}
    after = {"lo": {**counters, "tx_bytes": 6100}, "eth0": {**counters, "tx_bytes": 10**9}}
    network = [
        RankNetwork(rank=rank, namespace="1", asked_bytes=7, before={"lo": counters, "eth0": counters}, after=after)
        for rank in range(2)
    ]
    made = record(
        {**TRAIN, "transport": "grpc", "collective": "ring"}, network=network, transport={"ranks": [{"path": path}] * 2}
    )
    made.ranks[0].facts["parameter_server"] = {"servers": servers}
    rows = samples(*((rank, event, 0, at, at) for rank in range(2) for event, at in (("start", 0), ("end", 2000))))
    metric = suite_metrics(FOLDER)["server_bytes_per_s"].launch
    assert metric is not None
    assert metric(made, rows) == expected
