"""transfer and collective on real ranks: they verify themselves and leave the samples that metrics read."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from scaleproof.collectives.group import open_group
from scaleproof.core.context import RankContext
from scaleproof.core.recorder import read_events
from scaleproof.programs import collective, payload, transfer
from scaleproof.rank.unsupervised_ranks import run_ranks
from scaleproof.spec.case import CollectiveCase, TransferCase
from scaleproof.transports.contract import Done
from scaleproof.transports.shm.shm import SharedMemory
from tests.short_form import case_from
from tests.stand_in import stand_in

SIZES = (0, 1, 1000, 100_000)
BASE = {"suite": "test", "experiment": "test", "arm": "test", "iterations": 3, "warmup": 1, "sizes": SIZES}


def case_of(**fields: Any) -> TransferCase | CollectiveCase:
    case = case_from(BASE | fields)
    assert isinstance(case, TransferCase | CollectiveCase)
    return case


def samples(context: RankContext, event: str) -> Counter[tuple[int, bool]]:
    rows = read_events(context.recorder.path)
    rows = rows[rows["event"] == event.encode()]
    assert (rows["end_ns"] >= rows["start_ns"]).all()
    return Counter((int(row["nbytes"]), bool(row["warmup"])) for row in rows)


def all_passed(context: RankContext) -> int:
    assert [check for check in context.checks if not check["passed"]] == []
    return len(context.checks)


@pytest.mark.parametrize("transport", ["tcp", "shm", "grpc", "gloo"])
def test_transfer_verifies_every_size_and_records_round_trips_on_rank_0(transport: str) -> None:
    def body(context: RankContext) -> None:
        transfer.run(context)
        expected = {(size, warmup): count for size in SIZES for warmup, count in ((True, 1), (False, 3))}
        assert samples(context, "transfer") == (expected if context.rank == 0 else {})
        assert all_passed(context) == (2 * len(SIZES) if context.rank < 2 else 0)
        assert context.facts["traffic"]["nbytes"] == (sum(SIZES) * 6 if context.rank < 2 else 0)

    assert run_ranks(case_of(program="transfer", transport=transport, ranks=3), body) == ["", "", ""]


@pytest.mark.parametrize("operation", ["all_reduce", "reduce_scatter", "all_gather", "broadcast"])
@pytest.mark.parametrize(("transport", "algorithm"), [("shm", "ring"), ("gloo", "native")])
def test_collective_verifies_every_size_and_records_a_sample_per_call_on_every_rank(
    transport: str, algorithm: str, operation: str
) -> None:
    def body(context: RankContext) -> None:
        collective.run(context)
        unit = 4 * 3 if operation in ("reduce_scatter", "all_gather") else 4
        expected: Counter[tuple[int, bool]] = Counter()
        for size in SIZES:
            expected.update({(size // unit * unit, True): 1, (size // unit * unit, False): 3})
        assert samples(context, operation) == expected
        assert all_passed(context) == 2 * len(SIZES)

    assert run_ranks(
        case_of(program="collective", transport=transport, collective=algorithm, operation=operation, ranks=3), body
    ) == ["", "", ""]


class Lying:
    """Passes everything on and spoils one element of a result."""

    def __init__(self, honest: Any) -> None:
        self._honest = honest

    def __getattr__(self, name: str) -> Any:
        return getattr(self._honest, name)

    def all_reduce(self, buffer: np.ndarray) -> Done:
        self._honest.all_reduce(buffer).wait()
        buffer[-1:] += 1
        return Done()

    def recv(self, buffer: np.ndarray, peer: int) -> Done:
        self._honest.recv(buffer, peer).wait()
        buffer[-1:] ^= 1
        return Done()


def test_a_wrong_sum_fails_the_checks_of_its_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    def body(context: RankContext) -> None:
        collective.run(context)
        failed = {check["name"] for check in context.checks if not check["passed"]}
        assert failed == {f"all_reduce.{size}.{salt}" for size in SIZES if size >= 4 for salt in (1, 2)}

    monkeypatch.setattr(collective, "open_group", lambda context: Lying(open_group(context)))
    assert run_ranks(case_of(program="collective", transport="shm", collective="ring", ranks=2), body) == ["", ""]


def test_a_wrong_byte_fails_the_checks_of_rank_0(monkeypatch: pytest.MonkeyPatch) -> None:
    class LyingOnRank0:
        @staticmethod
        def connect(context: RankContext) -> Any:
            transport = SharedMemory.connect(context)
            return Lying(transport) if context.rank == 0 else transport

    def body(context: RankContext) -> None:
        transfer.run(context)
        failed = {check["name"] for check in context.checks if not check["passed"]}
        assert failed == (
            {f"transfer.{size}.{when}" for size in SIZES if size for when in ("first", "last")}
            if context.rank == 0
            else set()
        )

    stand_in(monkeypatch, "transport", "shm", LyingOnRank0)
    assert run_ranks(case_of(program="transfer", transport="shm"), body) == ["", ""]


def test_a_type_that_the_transport_does_not_reduce_is_named() -> None:
    outcome = run_ranks(case_of(program="collective", transport="gloo", dtype="complex64", ranks=2), collective.run)
    assert all("does not reduce complex64" in text for text in outcome)


def test_a_swapped_block_and_a_shifted_payload_differ_from_the_pattern() -> None:
    intact = payload.pattern(100_000, "float32", 1)
    swapped = np.concatenate([intact[50_000:], intact[:50_000]])
    assert payload.differing(swapped, intact) > 0
    assert payload.differing(payload.pattern(100_000, "float32", 2), intact) == intact.size


@pytest.mark.parametrize("dtype", ["int8", "float16", "float64"])
def test_sums_of_patterns_over_sixteen_ranks_are_exact(dtype: str) -> None:
    total = sum(payload.pattern(1000, dtype, rank) for rank in range(16))
    assert np.array_equal(total, sum(payload.pattern(1000, "int64", rank) for rank in range(16)))


def test_transfer_over_a_transport_without_sends_is_refused_in_one_line() -> None:
    with pytest.raises(ValueError, match="'horovod' has collectives only"):
        case_of(program="transfer", transport="horovod")
