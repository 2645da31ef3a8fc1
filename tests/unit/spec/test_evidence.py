"""The label of a launch follows from what its case asks for, in whatever suite: what is slept, stood in for or made
longer on request is never `measured`."""

from __future__ import annotations

from typing import Any

import pytest

from scaleproof.core.evidence_marks import SOFT_ROCE
from scaleproof.core.record_schema import Record
from scaleproof.launch.finish import compose_record
from scaleproof.paths import PROJECT
from scaleproof.spec.case import OwnCase
from scaleproof.spec.errors import SpecError
from scaleproof.spec.evidence import evidence_on, planned_evidence
from scaleproof.spec.stand_ins import check_stand_in, stands_in
from scaleproof.spec.suite import load_suite
from tests.short_form import case_from, ring_case, train_case
from tests.unit.claims import claims_samples
from tests.unit.claims.made_up_launches import judged, with_value

OWN = {"suite": "any", "experiment": "e", "arm": "a", "program": "own", "entry": "mine", "ranks": 2}
GOSSIP = {"ranks": 4, "transport": "tcp", "strategy": "gossip", "workload": "dnn_digits"}


def own(**options: str | int | float) -> OwnCase:
    case = case_from({**OWN, "options": options})
    assert isinstance(case, OwnCase)
    return case


@pytest.mark.parametrize(
    "case",
    [
        own(device="emulated"),
        own(driver="emulated", query_us=2),
        own(slept=1),
        train_case(workload="dnn_digits", compute="replay"),
        train_case(workload="dnn_digits", compute={"name": "replay", "burns": True}),
        train_case(**GOSSIP, step_delay="fixed:0.01"),
        train_case(**GOSSIP, message_delay="exponential:0.01"),
        train_case(**GOSSIP, faults="pause:1,0.5@2"),
        train_case(**GOSSIP, faults="lose:0.1,0.2"),
        ring_case(handicap=0.2),
    ],
    ids=lambda case: ",".join(f"{name}={value}" for name, value in case.written().items() if name not in OWN)[-60:],
)
def test_what_is_slept_stood_in_for_or_made_longer_is_emulated_on_the_hosts_network(case: Any) -> None:
    assert planned_evidence(case) == evidence_on(case, "measured") == "emulated"


@pytest.mark.parametrize(
    "case",
    [own(device="cuda"), own(slept=0), own(), train_case(workload="dnn_digits"), train_case(**GOSSIP), ring_case()]
    + [train_case(**GOSSIP, faults="kill:1@2")],
)
def test_what_is_run_as_the_case_names_it_is_measured(case: Any) -> None:
    assert planned_evidence(case) == "measured"


def test_a_prediction_stays_one_whatever_it_predicts() -> None:
    stand_in = own(device="emulated").changed({"transport": "tcp", "fabric": "simulated"})
    assert planned_evidence(stand_in) == "simulated"
    assert planned_evidence(train_case(workload="dnn_digits", compute="replay", fabric="simulated")) == "simulated"


def test_arms_of_awan2019_without_a_gpu_are_emulated_and_those_with_one_are_measured() -> None:
    suite = load_suite(PROJECT / "suites" / "awan2019")
    levels = {
        (case.arm.startswith("cuda_"), planned_evidence(case))
        for name in ("pointer_cache", "device_reduce")
        for size in suite.experiments[name].sizes.values()
        for case in size.cases
    }
    assert levels == {(False, "emulated"), (True, "measured")}


@pytest.mark.parametrize(
    ("claim", "level"),
    [
        ("cache.without", "emulated"),
        ("cache.small", "emulated"),
        ("device.large", "emulated"),
        ("cache.cuda", "measured"),
    ],
)
def test_claims_of_awan2019_bear_the_label_of_their_launches(claim: str, level: str) -> None:
    claim_id = f"awan2019.own.{claim}"
    assert judged(claim_id, with_value(claim_id, 1.0)).evidence == level


def test_an_option_stands_in_only_where_its_value_says_so() -> None:
    assert stands_in(own(device="emulated"), "device", "cuda") and not stands_in(own(device="cuda"), "device", "cuda")
    with pytest.raises(
        SpecError, match=r"^programs/mine.py, options.device: unknown value 'emulatd'; did you mean 'emu"
    ):
        stands_in(own(device="emulatd"), "device", "cuda")
    with pytest.raises(SpecError, match="it needs the option `compute: emulated`$"):
        check_stand_in(own(device="emulated"), "compute")


@pytest.mark.parametrize(("software", "level"), [(True, "emulated"), (False, "measured")])
def test_a_verbs_device_made_of_software_is_emulated_on_any_nodes(software: bool, level: str) -> None:
    facts: dict[str, Any] = {"verbs": {"software": software}}
    assert compose_record._evidence({0: {}, 1: facts}, "measured") == level
    record = claims_samples.record(claims_samples.TRAIN)
    ranks = [rank.model_copy(update={"facts": facts}) for rank in record.ranks]
    assert (SOFT_ROCE in record.model_copy(update={"ranks": ranks}).evidence_details) is software


def test_a_record_with_the_label_of_an_earlier_version_is_read_as_it_was_written() -> None:
    written = claims_samples.record({**OWN, "options": {"device": "emulated"}}, evidence="measured")
    assert Record.model_validate_json(written.model_dump_json()).evidence == "measured"
