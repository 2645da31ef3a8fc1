"""Fabric simulated from the command line: runs, resumes, is shown, judged and reported as any other, and starts no
process."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scaleproof.cli import main
from scaleproof.record.store import Store

SUITE = """
suite: predicted
title: predictions
experiments:
  scaling:
    summary: VGG-A on a star
    base: {program: train, fabric: {name: simulated, cluster: ethernet_10g}, strategy: sync_overlap, workload: vgg_a,
      minibatch: 256, steps: 2, warmup: 1,
      compute: {profile: xeon_e5_2698v3_x2, efficiency: 0.5}}
    arms:
      ring: {transport: tcp, collective: ring}
      servers: {transport: tcp, collective: ring, strategy: parameter_server}
      own: {transport: gloo, compute: {profile: null, efficiency: null}}
    sizes:
      smoke:
        launches: 6
        matrix:
          - {arms: [ring], sweep: {ranks: [1, 4, 128]}}
          - {arms: [servers], sweep: {ranks: [4]}}
      small: {launches: 1, matrix: [{arms: [own], sweep: {ranks: [2]}}]}
  calls:
    summary: messages and calls
    base: {fabric: {name: simulated, link_mbit: 1000}, transport: tcp, collective: ring, ranks: 4,
      sizes: [1 KiB, 1 MiB], iterations: 5}
    arms: {ring: {program: collective}, ping: {program: transfer, ranks: 2}}
    sizes: {smoke: {launches: 6, matrix: [{arms: [ring, ping]}]}}
"""
CLAIMS = """
- {id: predicted.speedup, origin: own, experiment: scaling, metric: speedup, select: {arm: ring, ranks: 4},
    against: {arm: ring, ranks: 1},
   rule: {name: at_least, value: 2}, statement: speed-up of 4, unit: x, direction: higher}
- {id: predicted.order, origin: own, experiment: scaling, metric: throughput, select: {ranks: 4}, arms: [{arm: ring},
    {arm: servers}],
   rule: {name: ordering}, statement: the ring is faster, unit: samples/s, direction: higher}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("predicted")
    suite = root / "suites" / "predicted"
    suite.mkdir(parents=True)
    (suite / "suite.yaml").write_text(SUITE)
    (suite / "published.yaml").write_text("rows: []\n")
    (suite / "claims.yaml").write_text(CLAIMS)
    return root


def run(folder: Path, command: str, *arguments: str) -> int:
    return main([command, *arguments, "--results", str(folder / "results"), "--suites", str(folder / "suites")])


def test_predictions_run_resume_and_are_judged(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(folder, "run", "predicted", "scaling") == 0
    assert "24 done" in capsys.readouterr().out
    assert run(folder, "run", "predicted", "scaling") == 0
    assert "24 finished before" in capsys.readouterr().out
    records = list(Store(folder / "results").records())
    assert {record.evidence for record in records} == {"simulated"} and not any(
        record.oversubscribed or record.ranks for record in records
    )
    assert run(folder, "judge", "predicted") == 0
    results = {
        claim["id"]: claim
        for claim in json.loads((folder / "results/claims/predicted.smoke.json").read_text())["claims"]
    }
    assert {(claim["evidence"], claim["verdict"], claim["noise_floor"]) for claim in results.values()} == {
        ("simulated", "reproduced", None)
    }
    assert (
        results["predicted.speedup"]["interval"]["method"] == "prediction interval of 5 draws"
        and results["predicted.speedup"]["warnings"] == []
    )


def test_the_first_repetition_is_the_prediction_and_each_other_one_a_draw(folder: Path) -> None:
    run(folder, "run", "predicted", "scaling")
    of_case = [record for record in Store(folder / "results").records() if record.case.ranks == 128]
    facts = {record.plan_index: record.transport["prediction"] for record in of_case}
    assert facts[0]["draw"] is None and all(
        parameter["drawn"] == parameter["value"] for parameter in facts[0]["parameters"]
    )
    assert len({facts[index]["draw"] for index in range(6)}) == 6 and facts[0]["algorithm"] == "ring"


def test_a_prediction_is_shown_and_reported(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(folder, "run", "predicted", "scaling")
    record = next(record for record in Store(folder / "results").records() if record.plan_index == 1)
    capsys.readouterr()
    assert main(["show", record.launch, "--results", str(folder / "results")]) == 0
    printed = capsys.readouterr().out
    assert "simulated (not validated here) on machine" in printed
    assert (
        "predicted in" in printed
        and "drawn" in printed
        and "stated, not measured" in printed
        and "no log" not in printed
    )
    run(folder, "judge", "predicted")
    assert (
        main(
            [
                "report",
                str(folder / "suites" / "predicted"),
                "--results",
                str(folder / "results"),
                "--output",
                str(folder / "reports"),
            ]
        )
        == 0
    )
    assert "simulated" in (folder / "reports" / "predicted.html").read_text()


def test_calls_and_messages_are_predicted_too(folder: Path) -> None:
    assert run(folder, "run", "predicted", "calls") == 0
    store = Store(folder / "results")
    for record in store.records():
        if record.case.experiment == "calls":
            rows = store.samples(record).to_pandas()
            assert set(rows.loc[~rows["event"].isin(["start", "end"]), "nbytes"]) == {1024, 1 << 20}


def test_a_case_without_a_profile_is_not_runnable_and_says_what_to_type(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(folder, "run", "predicted", "scaling", "--size", "small") == 1
    record = next(record for record in Store(folder / "results").records() if record.case.arm == "own")
    assert record.status == "not_runnable" and record.failure is not None and record.evidence == "simulated"
    assert (
        "no profile of vgg_a" in record.failure.message
        and "`scaleproof profile --workload vgg_a --batch 128`" in record.failure.advice
    )
