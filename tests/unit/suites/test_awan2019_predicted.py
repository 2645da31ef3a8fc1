"""Suite awan2019: what is predicted of GPU clusters has the published settings, and only the row of one GPU calibrates
it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from scaleproof.claims.claims_yaml import Claim, load_claims
from scaleproof.spec.case import TrainCase
from scaleproof.spec.gpu_node import rank_type
from scaleproof.spec.plan import plan
from scaleproof.spec.suite import load_suite
from scaleproof.workloads.case_network import network_of

SUITE = load_suite("awan2019", Path(__file__).parents[3] / "suites")
PUBLISHED = {row["id"]: row for row in yaml.safe_load((SUITE.folder / "published.yaml").read_text())["rows"]}
ROWS = [claim for claim in load_claims(SUITE) if claim.form.id.startswith("awan2019.bugliarello.")]
CASES = list({launch.case.case_id: launch.case for launch in plan(SUITE, "gpu_servers", "small")}.values())
HOROVOD = {"inception_v3_imagenet": (134.4, 142), "vgg16_imagenet": (130.9, 154), "resnet101": (114.3, 135.7)}
"""Images/s of one GPU, at least and at most: the README has the sources."""


def case_of(claim: Claim) -> TrainCase:
    select = claim.form.select
    assert select is not None
    (case,) = [each for each in CASES if each.arm == select["arm"] and each.ranks == select["ranks"]]
    assert isinstance(case, TrainCase)
    return case


def images_per_s(case: TrainCase) -> float:
    """Of one GPU that computes alone."""
    assert case.compute_options.profile is not None and case.compute_options.efficiency is not None
    peak = rank_type(case.compute_options.profile).peak_flops
    return peak * case.compute_options.efficiency / network_of(case).train_flop


def test_all_rows_of_several_gpus_are_predicted_and_judged() -> None:
    judged = [claim for claim in ROWS if claim.form.kind == "claim"]
    assert len(judged) == 24 and all(claim.form.rule is not None and not claim.form.needs for claim in judged)
    assert all(claim.form.rule.tolerance == 0.2 for claim in judged if claim.form.rule is not None)


def test_the_rows_of_one_gpu_calibrate_and_are_shown() -> None:
    shown = [claim for claim in ROWS if claim.form.kind == "context"]
    assert len(shown) == 4
    for claim in shown:
        assert images_per_s(case_of(claim)) == pytest.approx(PUBLISHED[claim.form.id]["value"], rel=1e-4)


@pytest.mark.parametrize("claim", ROWS, ids=lambda claim: claim.form.id)
def test_a_row_has_the_published_setting_and_compute_of_its_machine(claim: Claim) -> None:
    case, x = case_of(claim), PUBLISHED[claim.form.id]["x"]
    assert (case.ranks, case.value("strategy.servers")) == (x["gpus"], x["parameter_servers_best"])
    assert case.minibatch == x["batch_per_gpu"] * x["gpus"]
    one = re.sub(r"\.g\d+\.", ".g1.", claim.form.id)
    assert images_per_s(case) == pytest.approx(PUBLISHED[one]["value"], rel=1e-4)


def test_compute_of_horovods_machine_is_the_stated_range() -> None:
    cases = {launch.case.case_id: launch.case for launch in plan(SUITE, "gpu_horovod", "smoke")}.values()
    rates: dict[str, set[float]] = {}
    for case in cases:
        assert isinstance(case, TrainCase)
        rates.setdefault(case.workload, set()).add(round(images_per_s(case), 1))
    assert {workload: sorted(found) for workload, found in rates.items()} == {
        workload: pytest.approx(ends, rel=1e-3) for workload, ends in HOROVOD.items()
    }
