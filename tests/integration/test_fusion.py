"""Tensor fusion of Horovod, over Gloo and over MPI: whether tensors share all-reduces follows the case, and the training stays the same."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from _training import case_of
from _training import launch as alone

from harness.launch.supervisor import run_plan
from harness.record.schema import Record
from harness.record.store import Store
from harness.spec import registry
from harness.spec.plan import PlannedLaunch
from harness.stats.equivalence import relative_difference

STEPS = 6
TOLERANCE = 1e-5
"""As in test_equivalence.py."""
WAYS = [("horovod", 0.0), ("horovod", 64.0), ("horovod-mpi", 0.0), ("horovod-mpi", 64.0)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fusion")


@cache
def records(folder: Path, strategy: str) -> dict[tuple[str, float], Record]:
    """One launch each; `tracing: full` has Horovod write its timeline."""
    cases = [
        case_of(arm=f"{name}-{mib}", ranks=2, transport=name, launcher=registry.entry("transport", name).launcher or "local", fusion_mib=mib,
                strategy=strategy, steps=STEPS, tracing="full", workload="vgg_digits")
        for name, mib in WAYS
    ]  # fmt: skip
    run_plan([PlannedLaunch(case, 0, 0, order) for order, case in enumerate(cases)], folder / strategy, size="ci", deadline_s=60)
    found = {(record.case.transport or "", record.case.fusion_mib or 0.0): record for record in Store(folder / strategy).records()}
    assert {way: str(found[way].failure) for way in WAYS} == dict.fromkeys(WAYS, "None")
    return found


@pytest.mark.parametrize("strategy", ["sync", "sync_overlap"])
@pytest.mark.parametrize("transport", ["horovod", "horovod-mpi"])
def test_tensors_share_all_reduces_where_the_case_fuses_and_nowhere_else(folder: Path, transport: str, strategy: str) -> None:
    off, on = (records(folder, strategy)[transport, mib].ranks[0].facts["horovod"] for mib in (0.0, 64.0))
    assert (off["HOROVOD_FUSION_THRESHOLD"], on["HOROVOD_FUSION_THRESHOLD"], on["HOROVOD_CYCLE_TIME"]) == ("0", str(64 << 20), "1")
    tensors = len(records(folder, strategy)[transport, 64.0].ranks[0].facts["workload"]["bucket_nbytes"])
    assert off["fusion"]["tensors"] == on["fusion"]["tensors"] >= STEPS * tensors  # and the barriers
    assert off["fusion"]["fused"] == 0
    assert on["fusion"]["fused"] >= STEPS * tensors / 2


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_a_fused_training_is_that_of_one_worker(folder: Path, way: tuple[str, float]) -> None:
    record = records(folder, "sync_overlap")[way]
    base = alone(folder / "alone", case_of(steps=STEPS, workload="vgg_digits"))
    samples = Store(folder / "sync_overlap").samples(record).to_pandas()
    losses = samples[(samples["event"] == "loss") & (samples["rank"] == 0)].sort_values("step")["value"].to_numpy()
    assert relative_difference(losses, base.values("loss")) <= TOLERANCE
