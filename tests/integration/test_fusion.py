"""Tensor fusion of Horovod, over Gloo and over MPI, and of TensorFlow: whether tensors share all-reduces follows the
case, and the training stays the same."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from scaleproof.core.record_schema import Record
from scaleproof.launch.supervisor import run_plan
from scaleproof.record.store import Store
from scaleproof.spec import registry
from scaleproof.spec.plan import PlannedLaunch
from scaleproof.stats.training_equivalence import relative_difference
from tests.integration._training import case_of
from tests.integration._training import launch as alone

STEPS = 6
MIRRORED = "tensorflow-mirrored"
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
        case_of(
            arm=f"{name}-{mib}",
            ranks=2,
            transport=name,
            launcher=registry.get("transport", name).launcher,
            fusion_mib=mib,
            strategy=strategy,
            steps=STEPS,
            tracing="full",
            workload="vgg_digits",
        )
        for name, mib in WAYS
    ]
    run_plan(
        [PlannedLaunch(case, 0, 0, order) for order, case in enumerate(cases)],
        folder / strategy,
        size="ci",
        deadline_s=60,
    )
    by_arm = {
        (record.case.transport or "", record.case.value("transport.fusion_mib") or 0.0): record
        for record in Store(folder / strategy).records()
    }
    assert {way: str(by_arm[way].failure) for way in WAYS} == dict.fromkeys(WAYS, "None")
    return by_arm


@pytest.mark.parametrize("strategy", ["sync", "sync_overlap"])
@pytest.mark.parametrize("transport", ["horovod", "horovod-mpi"])
def test_tensors_share_all_reduces_where_the_case_fuses_and_nowhere_else(
    folder: Path, transport: str, strategy: str
) -> None:
    off, on = (records(folder, strategy)[transport, mib].ranks[0].facts["horovod"] for mib in (0.0, 64.0))
    assert (off["HOROVOD_FUSION_THRESHOLD"], on["HOROVOD_FUSION_THRESHOLD"], on["HOROVOD_CYCLE_TIME"]) == (
        "0",
        str(64 << 20),
        "1",
    )
    tensors = len(records(folder, strategy)[transport, 64.0].ranks[0].facts["workload"]["bucket_nbytes"])
    assert off["fusion"]["tensors"] == on["fusion"]["tensors"] >= STEPS * tensors  # and the barriers
    assert "missing" not in off["fusion"] | on["fusion"], "Horovod wrote what each call reduced"
    assert off["fusion"]["fused"] == 0
    assert on["fusion"]["fused"] >= STEPS * tensors / 2


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_a_fused_training_is_that_of_one_worker(folder: Path, way: tuple[str, float]) -> None:
    record = records(folder, "sync_overlap")[way]
    base = alone(folder / "alone", case_of(steps=STEPS, workload="vgg_digits"))
    samples = Store(folder / "sync_overlap").samples(record).to_pandas()
    losses = samples[(samples["event"] == "loss") & (samples["rank"] == 0)].sort_values("step")["value"].to_numpy()
    assert relative_difference(losses, base.values("loss")) <= TOLERANCE


@pytest.mark.parametrize(
    ("framework", "strategy", "ranks", "mib", "all_reduces"),
    [
        ("tensorflow", "sync", 2, 64.0, 1),
        ("tensorflow", "sync", 4, 0.03, 3),
        ("torch", "sync_overlap", 2, 0.0, 8),
    ],
)
def test_the_replicas_of_tensorflow_give_all_gradients_to_one_call_which_packs_them(
    folder: Path, framework: str, strategy: str, ranks: int, mib: float, all_reduces: int
) -> None:
    """The eight tensors of dnn_digits, last layer first, exceed 0.03 MiB with the fourth, the sixth and the eighth."""
    case = case_of(
        arm=f"{mib}",
        ranks=ranks,
        transport=MIRRORED,
        fusion_mib=mib,
        framework=framework,
        strategy=strategy,
        steps=STEPS,
    )
    run_plan([PlannedLaunch(case, 0, 0, 0)], folder / f"{MIRRORED}-{mib}", size="ci", deadline_s=60)
    [record] = Store(folder / f"{MIRRORED}-{mib}").records()
    assert record.failure is None, record.failure
    assert [rank.facts["fusion"] for rank in record.ranks] == [{"tensors": 8, "all_reduces": all_reduces}] * ranks
    assert record.ranks[0].facts["tuning"]["bytes_per_pack"] == max(int(mib * 2**20), 1)
    samples = Store(folder / f"{MIRRORED}-{mib}").samples(record).to_pandas()
    losses = samples[(samples["event"] == "loss") & (samples["rank"] == 0)].sort_values("step")["value"].to_numpy()
    assert relative_difference(losses, alone(folder / "alone_dnn", case_of(steps=STEPS)).values("loss")) <= TOLERANCE
