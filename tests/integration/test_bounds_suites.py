"""The programs of suites zou2017, taxonomy and collectives, and the predictions of das2016 and validation, through the
supervisor at size ci."""

from __future__ import annotations

from pathlib import Path

import pytest

from scaleproof.claims.suite_metrics import suite_metrics
from scaleproof.cli import main
from scaleproof.core.record_schema import Record
from scaleproof.launch.supervisor import run_plan
from scaleproof.record.store import Store
from scaleproof.spec import registry
from scaleproof.spec.plan import plan
from scaleproof.spec.suite import load_suite
from tests.integration.launches import assert_nothing_left
from tests.integration.netns import need_netns

ROOT = Path(__file__).resolve().parents[2]


def finished(results: Path, suite: str, experiment: str) -> list[Record]:
    """All launches of size ci, each of them ok."""
    outcome = run_plan(plan(load_suite(ROOT / "suites" / suite), experiment, "ci"), results, size="ci", deadline_s=90)
    records = [Store(results).load(launch)[0] for launch in outcome.launches]
    for record in records:
        assert record.status == "ok", record.failure
        assert all(check.passed for check in record.checks)
    assert_nothing_left(results, outcome.launches)
    return records


def test_an_overhead_that_is_not_divided_is_measured_on_one_worker(tmp_path: Path) -> None:
    single, double = sorted(finished(tmp_path, "zou2017", "overhead"), key=lambda record: record.case.ranks)
    measure, store = suite_metrics(ROOT / "suites" / "zou2017")["overhead_ratio"].launch, Store(tmp_path)
    assert measure is not None and not single.oversubscribed and not double.oversubscribed
    ratio = measure(single, store.samples(single).to_pandas())
    assert ratio is None or ratio >= 0.1  # what sleeps on a busy machine sleeps longer, never shorter


def test_every_convolution_algorithm_agrees_with_the_librarys(tmp_path: Path) -> None:
    (record,) = finished(tmp_path, "zou2017", "convolutions")
    assert {check.name for check in record.checks} == {
        f"result.{name}" for name in ("direct", "gemm", "fft", "kn2row", "winograd")
    }
    samples = Store(tmp_path).samples(record).to_pandas()
    assert (
        set(samples["value"].dropna()) == {2, 4, 8}
        and (samples.loc[samples["event"] == "conv.fft", "nbytes"] > 1 << 20).all()
    )


def test_servers_and_schemes_run_behind_capped_links(tmp_path: Path) -> None:
    need_netns()
    (servers,) = finished(tmp_path, "zou2017", "servers")
    assert servers.evidence == "emulated" and not servers.oversubscribed
    assert {record.case.arm for record in finished(tmp_path, "taxonomy", "delays")} == {"ring", "naive_sync_ps"}


@pytest.mark.parametrize(("suite", "experiment"), [("das2016", "scaling"), ("validation", "prediction")])
def test_predictions_need_no_processes(suite: str, experiment: str, tmp_path: Path) -> None:
    assert main(["run", suite, experiment, "--size", "ci", "--results", str(tmp_path)]) == 0
    records = list(Store(tmp_path).records())
    assert (
        records
        and {record.evidence for record in records} == {"simulated"}
        and not any(record.ranks for record in records)
    )


def test_all_reduces_follow_a_ping_pong_whose_bytes_are_not_in_their_region(tmp_path: Path) -> None:
    need_netns()
    (record,) = finished(tmp_path, "collectives", "calls")
    assert record.evidence == "emulated" and not record.oversubscribed
    metrics, samples = suite_metrics(ROOT / "suites" / "collectives"), Store(tmp_path).samples(record).to_pandas()
    asked, call_s = metrics["asked_ratio"].launch, metrics["call_s"].size
    assert asked is not None and call_s is not None
    assert asked(record, samples) == pytest.approx(1, abs=1e-3)
    assert {nbytes: call_s(record, samples, nbytes) is not None for nbytes in (4, 16384)} == {4: True, 16384: True}


def test_every_algorithm_sums_integers_exactly_and_two_ranks_have_one_order(tmp_path: Path) -> None:
    (record,) = finished(tmp_path, "collectives", "order")
    metrics, samples = suite_metrics(ROOT / "suites" / "collectives"), Store(tmp_path).samples(record).to_pandas()
    values = [metrics[name].launch for name in ("integers_wrong", "order_dependence")]
    assert [value(record, samples) for value in values if value is not None] == [0, 0]
    assert set(record.ranks[0].facts["order"]) == set(registry.names("collective")) - {"hierarchical", "native"}
