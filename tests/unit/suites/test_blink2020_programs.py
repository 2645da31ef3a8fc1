"""The program of blink2020 in virtual time: every element is what it should be, and chunks are adapted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scaleproof.simulate.predict import Predictor
from scaleproof.spec.errors import SpecError
from scaleproof.spec.plan import PlannedLaunch
from tests.short_form import case_from

PROGRAMS = Path(__file__).resolve().parents[3] / "suites" / "blink2020" / "programs"


THREE = "dgx1v_slow[0,1,2]"


def sent(
    operation: str,
    over: str,
    chunk_kib: int,
    warmup: int = 0,
    cluster: str = THREE,
    ranks: int = 3,
    nbytes: int = 256 << 10,
    counted: int = 0,
    programs: Path = PROGRAMS,
) -> Any:
    """The prediction of two iterations."""
    case = case_from(
        {
            "program": "own",
            "entry": "link_collectives",
            "suite": "blink2020",
            "experiment": "e",
            "arm": "a",
            "transport": "tcp",
            "ranks": ranks,
            "iterations": 2,
            "warmup": warmup,
            "sizes": [nbytes],
            "fabric": {"name": "simulated", "cluster": cluster, "costs": "stated"},
            "options": {
                "operation": operation,
                "over": over,
                "chunk_kib": chunk_kib,
                "slow_percent": 13,
                "counted": counted,
            },
        }
    )
    return Predictor(Path("nowhere")).predict(PlannedLaunch(case, 0, 1, 0, programs=str(programs)))


@pytest.mark.parametrize("operation", ["broadcast", "all_reduce"])
@pytest.mark.parametrize("over", ["trees", "rings"])
def test_every_element_is_what_it_should_be(operation: str, over: str) -> None:
    checks = sent(operation, over, 16).checks
    assert checks and all(check["passed"] for check in checks), checks


@pytest.mark.parametrize("over", ["trees", "rings"])
def test_sums_at_another_place_are_wrong(over: str, tmp_path: Path) -> None:
    """A launch that counts them ends well, any other fails its check."""
    program, right = (PROGRAMS / "link_collectives.py").read_text(), "self.array[part] += arrived.value"
    assert right in program
    (tmp_path / "link_collectives.py").write_text(program.replace(right, f"{right[:-13]}np.roll(arrived.value, 1)"))
    found = sent("all_reduce", over, 16, counted=1, programs=tmp_path)
    assert not found.checks and most_wrong(found) > 1000
    assert not all(check["passed"] for check in sent("all_reduce", over, 16, programs=tmp_path).checks)
    assert most_wrong(sent("all_reduce", over, 16, counted=1)) == 0


def most_wrong(found: Any) -> float:
    rows = found.samples.to_pandas()
    return float(rows[rows.event == "wrong"].value.max())


@pytest.mark.parametrize(
    ("operation", "over", "cluster", "ranks"),
    [
        ("broadcast", "both_channels", "dgx1v_slow[0,1,4,6]", 4),
        ("all_reduce", "both_channels", "dgx1v_slow[0,1,4,6]", 4),
        ("all_reduce", "one_hop", "dgx2_slow", 5),
        ("all_reduce", "double_trees", "dgx2_slow", 5),
        ("all_reduce", "three_phases", "two_servers_slow", 8),
    ],
)
def test_every_element_is_what_it_should_be_in_the_other_forms(
    operation: str, over: str, cluster: str, ranks: int
) -> None:
    checks = sent(operation, over, 16, cluster=cluster, ranks=ranks).checks
    assert checks and all(check["passed"] for check in checks), checks


def test_behind_a_switch_hops_decide_what_a_small_all_reduce_takes() -> None:
    """A hop takes 27.2 ms: 2 of them, 2 log2(8), 2 (8 - 1)."""
    taken = {}
    for over in ("one_hop", "double_trees", "one_ring"):
        rows = sent("all_reduce", over, 64, warmup=1, cluster="dgx2_slow", ranks=8, nbytes=1 << 10).samples.to_pandas()
        steps = rows[(rows.event == "step") & ~rows.warmup.astype(bool)]
        taken[over] = (steps.end_ns.max() - steps.start_ns.min()) / 2 / 27.2e6
    assert taken == pytest.approx({"one_hop": 2, "double_trees": 6, "one_ring": 14}, rel=0.01)


@pytest.mark.parametrize(
    ("operation", "over", "message"),
    [
        ("all_reduce", "tree", "options.over: unknown value 'tree'; did you mean 'trees'"),
        ("broadcast", "one_hop", "options.over: 'one_hop' is for an all-reduce; a broadcast goes over trees, rings"),
    ],
)
def test_an_option_that_cannot_be_is_refused(operation: str, over: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        sent(operation, over, 16)


def test_chunks_are_doubled_while_that_is_faster_and_end_at_the_fastest() -> None:
    found = sent("all_reduce", "trees", 0, warmup=8)
    rows = found.samples.to_pandas()
    chunks = rows[(rows.event == "chunk") & (rows["rank"] == 0)].value.tolist()
    assert len(chunks) == 8 and chunks[0] == 32 << 10, "the second is twice the first"
    assert all((rows[(rows.event == "chunk") & (rows["rank"] == rank)].value == chunks).all() for rank in (1, 2))
    assert chunks[-1] <= max(chunks)
    assert all(check["passed"] for check in found.checks)
