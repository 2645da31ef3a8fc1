"""Effects of verdicts of suite `validation` on the evidence of all other suites."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from scaleproof.claims.claims_file import ClaimResult, Finding, write_claims
from scaleproof.claims.evidence_labels import Findings
from scaleproof.claims.judge import judge_suite
from scaleproof.claims.notes import NoteCode, note
from scaleproof.core.record_schema import Code, Record
from scaleproof.record.store import Store
from scaleproof.spec.errors import SpecError
from scaleproof.spec.plan import plan
from scaleproof.spec.suite import load_suite
from tests.noise_floors import calibrate_for_suite
from tests.unit.claims.claims_samples import TRAIN, record
from tests.unit.claims.test_judge import SPEEDUP, SUITE, commit, judged, one_rank_takes_twice_as_long

FORM: dict[str, Any] = {
    "what": "dilation",
    "evidence": "emulated",
    "where": {"fabric": "netns"},
    "unless": {"dilation": 1},
    "alike": ["transport"],
    "up_to": ["ranks"],
    "down_to": ["dilation"],
}
ON: dict[str, Any] = {"transport": "tcp", "ranks": 4, "dilation": 8}
PREDICTED: dict[str, Any] = {
    "what": "predictions",
    "evidence": "simulated",
    "where": {"fabric": "simulated"},
    "alike": ["transport"],
    "up_to": ["ranks"],
}


def verdict(
    word: str | None, name: str = "validation.dilation", form: dict[str, Any] = FORM, **finding: Any
) -> ClaimResult:
    """A verdict of suite `validation`, made by hand."""
    validation_fields = {
        "form": form,
        "machine": "m",
        "code": "d",
        "latest": "2026-01-01T00:00:00Z",
        "judged_on": [ON],
        **finding,
    }
    return ClaimResult(
        id=name,
        suite="validation",
        size="smoke",
        kind="claim",
        origin="own",
        statement="s",
        metric="speedup",
        published=None,
        ours=1.12,
        interval=None,
        n=6,
        unit="x",
        evidence="emulated",
        verdict=word,
        rule="1.12 is not between",
        reason="",
        runs=(),
        experiment="e",
        base=None,
        provenance=None,
        gate=False,
        direction=None,
        where=None,
        source="own",
        deviations=(),
        control=None,
        validates=Finding.model_validate(validation_fields),
    )


def emulated(**fields: Any) -> Record:
    case = {
        **TRAIN,
        "transport": "tcp",
        "collective": "ring",
        "fabric": "netns",
        "compute": "replay",
        "ranks": 4,
        "dilation": 8,
        **fields,
    }
    return record(case, evidence="emulated")


def standing(findings: list[ClaimResult], *records: Record) -> str:
    label = Findings.of_results(findings).label(records)
    assert label is not None and label.why
    return label.standing


def test_what_is_measured_has_no_label() -> None:
    assert Findings.of_results([verdict("not reproduced")]).label([record(TRAIN)]) is None


def test_without_verdicts_nothing_is_validated_and_the_command_is_named() -> None:
    label = Findings().label([emulated()])
    assert label is not None
    assert (label.standing, label.notes) == ("not validated here", (note(NoteCode.NEVER_VALIDATED),))
    assert "snakemake validation" in label.why[0]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, "validated"),
        ({"ranks": 2}, "validated"),
        ({"ranks": 8}, "not validated here"),
        ({"dilation": 4}, "not validated here"),
        ({"transport": "grpc"}, "not validated here"),
        ({"dilation": 1}, "not validated here"),
    ],
)
def test_a_claim_that_holds_validates_launches_like_those_it_was_judged_on(
    fields: dict[str, Any], expected: str
) -> None:
    assert standing([verdict("reproduced")], emulated(**fields)) == expected


@pytest.mark.parametrize("fields", [{}, {"ranks": 8}, {"dilation": 4}, {"transport": "grpc"}])
def test_a_missed_validation_lowers_every_launch_in_its_scope(fields: dict[str, Any]) -> None:
    label = Findings.of_results([verdict("not reproduced", missed_by=0.07)]).label([emulated(**fields)])
    assert label is not None and label.standing == "missed"
    assert label.why == ("validation.dilation (size smoke) is missed by 0.07 x: 1.12 is not between",)


def test_a_missed_validation_leaves_launches_outside_its_scope() -> None:
    assert standing([verdict("not reproduced")], emulated(dilation=1)) == "not validated here"


def test_verdicts_of_other_machines_and_versions_do_not_count() -> None:
    others: list[dict[str, Any]] = [{"machine": "n"}, {"code": "e"}]
    for other in others:
        for word in ("reproduced", "not reproduced"):
            assert standing([verdict(word, **other)], emulated()) == "not validated here"


def test_the_newest_verdict_counts() -> None:
    later: dict[str, Any] = {"latest": "2026-02-01T00:00:00Z"}
    assert standing([verdict("not reproduced"), verdict("reproduced", **later)], emulated()) == "validated"
    assert standing([verdict("not reproduced", **later), verdict("reproduced")], emulated()) == "missed"


def test_everything_that_is_checked_of_a_level_must_hold() -> None:
    other: dict[str, Any] = {"name": "validation.shrink", "form": {**FORM, "what": "shrink", "unless": {}}}
    assert standing([verdict("reproduced"), verdict("reproduced", **other)], emulated()) == "validated"
    for doubt in (
        verdict("inconclusive", **other),
        verdict("inconclusive", **other, machine=None, code="", judged_on=[]),
    ):
        assert standing([verdict("reproduced"), doubt], emulated()) == "not validated here"
    assert standing([verdict("inconclusive", **other), verdict("not reproduced")], emulated()) == "missed"


def test_the_label_of_a_number_is_that_of_its_worst_launches() -> None:
    assert standing([verdict("reproduced")], emulated(), emulated(ranks=8)) == "not validated here"
    assert standing([verdict("reproduced")], emulated(), record(TRAIN)) == "validated"


def test_a_prediction_is_worth_no_more_than_what_it_was_judged_against() -> None:
    case = {**TRAIN, "transport": "tcp", "collective": "ring", "fabric": "simulated", "ranks": 4}
    predicted = record(case, evidence="simulated")
    held = verdict("reproduced", "validation.prediction", PREDICTED)
    assert standing([held], predicted) == "validated"
    assert standing([held, verdict("not reproduced")], predicted) == "validated", "no launch that missed is behind it"
    assert (
        standing([verdict("reproduced", "validation.prediction", PREDICTED, below=["its base missed"])], predicted)
        == "missed"
    )
    alone = record(
        {**case, "ranks": 1, "nodes": 1, "strategy": "local_only", "transport": None, "collective": "native"},
        evidence="simulated",
    )
    assert Findings().label([alone]) is None, "one rank exchanges nothing"


@pytest.mark.parametrize(
    ("validation_verdict", "label"),
    [("reproduced", "emulated (validated)"), ("not reproduced", "emulated (validation missed)")],
)
def test_a_verdict_bears_the_label_of_its_launches(tmp_path: Path, validation_verdict: str, label: str) -> None:
    everywhere = {"what": "all", "evidence": "emulated"}
    write_claims(
        tmp_path / "results" / "claims" / "validation.smoke.json",
        [verdict(validation_verdict, form=everywhere, judged_on=[{}])],
    )
    result = judged(tmp_path, SPEEDUP, one_rank_takes_twice_as_long, lambda launch: {"evidence": "emulated"})
    assert (result.verdict, result.evidence_text, result.lowered) == (
        "reproduced",
        label,
        validation_verdict != "reproduced",
    )


def test_what_is_counted_bears_no_label(tmp_path: Path) -> None:
    claim = {
        **SPEEDUP,
        "metric": "max_loss_difference",
        "unit": "1",
        "direction": "lower",
        "rule": {"name": "equal_to_tolerance", "value": 0, "tolerance": 1},
    }
    result = judged(tmp_path, claim, one_rank_takes_twice_as_long, lambda launch: {"evidence": "emulated"})
    assert (result.verdict, result.label, result.evidence_text) == ("reproduced", None, "emulated")


def test_verdicts_of_another_form_are_one_line(tmp_path: Path) -> None:
    (tmp_path / "claims").mkdir()
    (tmp_path / "claims" / "validation.small.json").write_text('{"claims": [{}]}')
    with pytest.raises(SpecError, match="no verdicts of this version; type `scaleproof judge validation --size small`"):
        Findings.read(tmp_path)


@pytest.mark.parametrize(("replay_ms", "word", "missed_by"), [(104, "reproduced", None), (125, "not reproduced", 0.15)])
def test_a_judged_claim_of_suite_validation_keeps_what_others_need(
    tmp_path: Path, replay_ms: float, word: str, missed_by: float | None
) -> None:
    result = validation(tmp_path, {"replayed": lambda launch: replay_ms if launch.case.ranks == 2 else 100})
    assert (result.verdict, result.label) == (word, None) and result.validates is not None
    assert result.validates.judged_on == ({"ranks": 2},) and (result.validates.machine, result.validates.code) == (
        "m",
        "d",
    )
    assert result.validates.missed_by == (None if missed_by is None else pytest.approx(missed_by))


def validation(tmp_path: Path, lengths: dict[str, Any]) -> ClaimResult:
    """The claim that two ranks (emulated) are as fast as one rank's batch split over none (measured)."""
    (tmp_path / "validation").mkdir()
    (tmp_path / "validation" / "suite.yaml").write_text(SUITE.replace("suite: mine", "suite: validation"))
    claim = {
        **SPEEDUP,
        "id": "validation.replay",
        "select": {"transport": "gloo"},
        "against": {"transport": "tcp"},
        "base_evidence": "measured",
        "rule": {"name": "ratio", "low": 0.95, "high": 1.05},
        "validates": {"what": "replay", "evidence": "emulated", "up_to": ["ranks"]},
    }
    (tmp_path / "validation" / "claims.yaml").write_text(yaml.safe_dump([claim]))
    suite, store = load_suite("validation", tmp_path), Store(tmp_path / "results")
    calibrate_for_suite(store.results, suite, "smoke")
    for launch in plan(suite, "speed", "smoke"):
        gloo = launch.case.transport == "gloo"
        commit(store, launch, lengths["replayed"](launch) if gloo else 100, {"evidence": "emulated"} if gloo else {})
    (result,) = judge_suite(suite, "smoke", store)
    return result


def test_a_missed_validation_of_the_level_below_is_inherited(tmp_path: Path) -> None:
    from scaleproof.claims.claims_yaml import load_claims
    from scaleproof.claims.evidence_labels import with_misses_below

    suite = load_suite("validation")
    forms = {claim.form.id: claim.form for claim in load_claims(suite)}
    base = emulated()
    held = verdict("reproduced", "validation.prediction", PREDICTED).model_copy(
        update={"runs": (base.launch,), "evidence": "simulated"}
    )
    missed = verdict("not reproduced", "validation.dilation.ring", missed_by=0.07)
    prediction, _ = with_misses_below([held, missed], forms, {base.launch: base})
    assert (
        prediction.validates is not None
        and "was judged against emulated launches, whose validation was missed" in prediction.validates.below[0]
    )
    prediction, _ = with_misses_below(
        [held, verdict("reproduced", "validation.dilation.ring")], forms, {base.launch: base}
    )
    assert prediction.validates is not None and not prediction.validates.below


def test_only_suite_validation_may_validate_evidence(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="only suite 'validation' says which evidence is validated"):
        judged(tmp_path, {**SPEEDUP, "validates": {"what": "w", "evidence": "emulated"}}, one_rank_takes_twice_as_long)


def test_a_field_that_no_case_has_is_named(tmp_path: Path) -> None:
    (tmp_path / "validation").mkdir()
    (tmp_path / "validation" / "suite.yaml").write_text(SUITE.replace("suite: mine", "suite: validation"))
    claim = {**SPEEDUP, "validates": {"what": "w", "evidence": "emulated", "alike": ["transprot"]}}
    (tmp_path / "validation" / "claims.yaml").write_text(yaml.safe_dump([claim]))
    with pytest.raises(SpecError, match="no case has the field 'transprot'; did you mean 'transport'"):
        judge_suite(load_suite("validation", tmp_path), "smoke", Store(tmp_path / "results"))


def test_a_validation_counts_only_for_the_same_code() -> None:
    label = Findings.of_results([verdict("reproduced", code="e")]).label([emulated()])
    assert label is not None and label.why == ("dilation: not judged here with this version of the code",)
    newer = emulated().model_copy(update={"code": Code(version="0", commit=None, dirty=None, digest="e")})
    assert standing([verdict("reproduced", code="e")], newer) == "validated"


def predicted(binds: str) -> Record:
    case = {**TRAIN, "transport": "tcp", "collective": "ring", "fabric": "simulated", "ranks": 4}
    made = record(case, evidence="simulated")
    return made.model_copy(update={"transport": {**made.transport, "prediction": {"binds": binds}}})


@pytest.mark.parametrize(
    ("word", "of_link", "of_latency"),
    [("reproduced", "validated", "not validated here"), ("not reproduced", "missed", "not validated here")],
)
def test_a_prediction_has_the_verdicts_of_those_that_the_same_resource_binds(
    word: str, of_link: str, of_latency: str
) -> None:
    judged_on = [{"transport": "tcp", "ranks": 4, "binds": "link"}]
    findings = [verdict(word, form={**PREDICTED, "binds": True}, judged_on=judged_on)]
    assert standing(findings, predicted("link")) == of_link
    assert standing(findings, predicted("latency")) == of_latency
    assert standing([verdict(word, form=PREDICTED)], predicted("latency")) == of_link


CARRIED: dict[str, Any] = {
    "what": "rates of links",
    "evidence": "emulated",
    "where": {"fabric": "netns"},
    "total_rate": True,
}


REPLAYED = verdict(
    "reproduced", "validation.replay", {"what": "all", "evidence": "emulated", "where": {"compute": "replay"}}
)
"""Holds for every launch that replays its compute."""


def links(mbit: float | None, ranks: int = 4, **fields: Any) -> Record:
    return emulated(
        fabric={"name": "netns", "link_mbit": mbit}, ranks=ranks, **{"dilation": 1, "minibatch": 16, **fields}
    )


def carries(word: str, gbit: float) -> ClaimResult:
    """A claim of suite validation on links that are set to carry so much together."""
    name = f"validation.carrying.{gbit}"
    return verdict(word, name, CARRIED, judged_on=[{"links_mbit": gbit * 1000}], missed_by=0.3)


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (links(100), "validated"),
        (links(1000), "validated"),
        (links(1000, ranks=16), "not validated here"),
        (links(10000), "missed"),
        (links(10000, ranks=16), "missed"),
        (links(10000, dilation=2), "not validated here"),
        (links(10000, dilation=5, shrink=2), "validated"),
        (links(None), "validated"),
    ],
)
def test_links_that_carry_less_than_set_lower_launches_that_are_set_to_as_much_or_more(
    record: Record, expected: str
) -> None:
    findings = [REPLAYED, carries("reproduced", 0.4), carries("reproduced", 4), carries("not reproduced", 40)]
    assert standing(findings, record) == expected


def test_links_that_carry_their_rate_validate_no_launch_of_which_nothing_else_is_known() -> None:
    held = carries("reproduced", 4)
    assert standing([held], links(1000)) == "not validated here"
    assert standing([held, REPLAYED], links(1000)) == "validated"
    alone: dict[str, Any] = {"ranks": 1, "transport": None, "strategy": "local_only", "collective": "native"}
    assert standing([carries("not reproduced", 4)], links(10000, **alone)) == "not validated here", "it sends nothing"


def test_a_rate_that_was_not_decided_leaves_lower_rates_alone() -> None:
    findings = [REPLAYED, carries("reproduced", 4), carries("inconclusive", 16)]
    assert standing(findings, links(1000)) == "validated"
    assert standing(findings, links(4000)) == "not validated here"


def test_what_was_not_carried_is_named_with_its_rate() -> None:
    label = Findings.of_results([REPLAYED, carries("reproduced", 4)]).label([links(10000)])
    assert label is not None and label.why == ("rates of links: not judged on links_mbit 40000",)


def test_a_judged_ring_keeps_the_rate_of_its_links(tmp_path: Path) -> None:
    from scaleproof.claims.claim_form import ClaimForm
    from scaleproof.claims.evidence_labels import finding

    form = ClaimForm.model_validate(
        {
            "id": "validation.carrying",
            "origin": "own",
            "statement": "s",
            "unit": "fraction",
            "metric": "carried_share",
            "rule": {"name": "at_least", "value": 0.9},
            "validates": CARRIED,
        }
    )
    found = finding(form, verdict("not reproduced").model_copy(update={"ours": 0.6}), [links(10000)])
    assert found is not None and found.judged_on == ({"links_mbit": 40000.0},)
    assert found.missed_by == pytest.approx(0.3)
