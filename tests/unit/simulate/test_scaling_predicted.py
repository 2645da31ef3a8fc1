"""Predictions of scaling: the requested case is simulated, the limiting resource is the one whose improvement helps,
and mistakes are one-line errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from scaleproof.claims.claims_file import write_claims
from scaleproof.cli import main
from scaleproof.commands.predict_compute import efficiency_of
from scaleproof.commands.predict_nodes import nodes_of
from scaleproof.commands.predict_output import HINTS
from scaleproof.record.digest import code_digest, machine_id
from scaleproof.simulate.cost_model import CostModel, Gamma
from scaleproof.simulate.halved_resources import RESOURCES, halved
from scaleproof.simulate.predicted_scaling import Question
from scaleproof.simulate.step_engine import simulate
from scaleproof.simulate.uncertain import Uncertain
from scaleproof.spec.cluster import cluster_of
from scaleproof.spec.earlier_form import converted
from scaleproof.spec.errors import SpecError
from scaleproof.workloads import dnn
from scaleproof.workloads.networks import Network
from scaleproof.workloads.profile import Profile, Spread, peak_profile, write
from scaleproof.workloads.vgg import vgg_a
from tests.unit.claims.test_claims_validation import verdict

NETWORK: Network = vgg_a(64, 0.25)
FREE = CostModel(
    (None,), (Uncertain("alpha", 0.0),), (Uncertain("beta", 0.0),), (Gamma(1, Uncertain("gamma", 0.0)),), 1.0, "free"
)
UNSURE = CostModel(
    (None,),
    (Uncertain("alpha", 3e-5, 1e-5, 9e-5),),
    (Uncertain("beta", 0.0),),
    (Gamma(1, Uncertain("gamma", 1e-10, 0.0, 3e-10)),),
    0.9,
    "unsure",
)
ENGINEERS = ["predict", "--fabric", "25g", "--peak", "2", "--efficiency", "0.4..0.6"]


def question(
    costs: CostModel = UNSURE, shares: tuple[float, ...] = (0.5,), minibatch: int | None = 64, **fields: Any
) -> Question:
    def profiles(case: Any) -> tuple[Profile, ...]:
        return tuple(
            peak_profile(NETWORK, case.minibatch // case.ranks, "xeon_e5_2698v3_x2", share) for share in shares
        )

    defaults = {
        "transport": "tcp",
        "collective": "ring",
        "strategy": "sync_overlap",
        "workload": "vgg_a",
        "fabric.link_mbit": 1000.0,
    }
    defaults |= {"compute.profile": "xeon_e5_2698v3_x2", "compute.efficiency": shares[0], **converted(fields)}
    return Question(defaults, NETWORK, costs, profiles, minibatch, None if minibatch else 8)


def test_a_point_equals_the_simulation_of_its_case():
    scaling = question()
    point, case = scaling.point(4), scaling.case(4)
    prediction = simulate(
        case.changed({"workload": "vgg_a", "workload.image_side": 64, "workload.width": 0.25}),
        scaling.profiles(case)[0],
        cluster_of(case),
        UNSURE.central(),
    )
    assert point.step_s.value == pytest.approx(prediction.step_s)
    assert point.throughput.value == pytest.approx(64 / prediction.step_s)
    assert point.exposed_s.value == pytest.approx(prediction.step_s - scaling.profiles(case)[0].step_s)
    assert point.speedup.value == pytest.approx(scaling.point(1).step_s.value / prediction.step_s)


@pytest.mark.parametrize("strategy", ["sync_overlap", "distributed_update"])
def test_exposed_time_is_the_step_minus_the_compute_of_one_node(strategy: str):
    scaling = question(FREE, strategy=strategy, link_mbit=None)
    measured = scaling.profiles(scaling.case(8))[0].model_copy(update={"update_s": Spread(median=0.5)})
    point = Question(scaling.fields, NETWORK, FREE, lambda case: (measured,), 64).point(8)
    assert point.exposed_s.value == pytest.approx(0.0, abs=1e-9)
    updated = 0.5 if strategy == "sync_overlap" else 0.5 / 8
    assert point.compute_s.value == pytest.approx(measured.step_s - 0.5 + updated)


def test_without_communication_costs_scaling_is_ideal_and_computing_binds():
    point = question(FREE, link_mbit=None).point(16)
    assert (point.efficiency.value, point.exposed_s.value) == (pytest.approx(1.0), pytest.approx(0.0, abs=1e-12))
    assert point.binds == "compute" and point.gains["compute"] == pytest.approx(0.5)


def test_intervals_hold_the_prediction_and_the_whole_range_of_efficiency():
    point = question(shares=(0.5, 0.4, 0.6)).point(8)
    for share in (0.4, 0.5, 0.6):
        part = question(shares=(share,)).point(8)
        assert point.throughput.low <= part.throughput.value <= point.throughput.high
        assert part.step_s.low < part.step_s.value < part.step_s.high, "costs are uncertain too"
    slowest = question(shares=(0.4,)).point(8).step_s
    assert slowest.value < point.step_s.high <= slowest.high, "costs are drawn at the ends of the range too"
    assert question(FREE, link_mbit=1000.0).point(8).step_s.low == question(FREE, link_mbit=1000.0).point(8).step_s.high


@pytest.mark.parametrize(
    ("fields", "costs", "binds"),
    [
        ({"fabric.link_mbit": 10.0}, FREE, "link"),
        (
            {"fabric.link_mbit": None},
            CostModel(
                (None,),
                (Uncertain("alpha", 0.05),),
                (Uncertain("beta", 0.0),),
                (Gamma(1, Uncertain("gamma", 0.0)),),
                1.0,
                "",
            ),
            "latency",
        ),
        (
            {"fabric.link_mbit": None},
            CostModel(
                (None,),
                (Uncertain("alpha", 0.0),),
                (Uncertain("beta", 1e-6),),
                (Gamma(1, Uncertain("gamma", 0.0)),),
                1.0,
                "",
            ),
            "transport",
        ),
        ({"fabric.link_mbit": 10.0, "strategy": "parameter_server", "strategy.servers": 1}, FREE, "server"),
        ({"fabric.link_mbit": 1e7}, FREE, "compute"),
    ],
)
def test_the_limiting_resource_is_the_one_that_was_made_scarce(fields: dict[str, Any], costs: CostModel, binds: str):
    point = question(costs, **fields).point(8)
    assert point.binds == binds
    assert all(0 <= gain <= 0.5 + 1e-9 for name, gain in point.gains.items()), (
        "half of the time of one resource is half of the step at most"
    )


def test_the_largest_useful_number_of_nodes_is_exact():
    scaling = question(minibatch=None, link_mbit=2000.0)
    useful = scaling.useful([1, 4, 16, 64], 0.5)
    assert scaling.point(useful.value).efficiency.value >= 0.5 > scaling.point(useful.value + 1).efficiency.value
    assert useful.low <= useful.value <= useful.high
    assert useful.at_end == ""


def test_node_counts_beyond_the_minibatch_are_left_out():
    useful = question(FREE, link_mbit=None).useful([1, 8, 64], 0.5)
    assert (useful.value, useful.at_end) == (64, "the minibatch has no more samples")
    assert question().counts(1, 10) == [1, 2, 4, 8]
    assert question(FREE, link_mbit=0.001).useful([8, 64], 0.5).value == 0


def test_there_are_never_more_servers_than_nodes():
    assert [
        question(strategy="parameter_server", servers=4).case(nodes).value("strategy.servers") for nodes in (1, 2, 8)
    ] == [1, 2, 4]


def test_a_measured_profile_is_drawn_from_its_intervals():
    def measured(case: Any) -> tuple[Profile, ...]:
        reckoned = peak_profile(NETWORK, case.minibatch // case.ranks, "xeon_e5_2698v3_x2", 0.5)

        def wide(time: Spread) -> Spread:
            return Spread(median=time.median, low=time.median * 0.9, high=time.median * 1.1, n=6)

        layers = tuple(
            layer.model_copy(
                update={
                    "forward_s": wide(layer.forward_s),
                    "backward_s": wide(layer.backward_s),
                    "weight_s": wide(layer.weight_s),
                }
            )
            for layer in reckoned.layers
        )
        return (reckoned.model_copy(update={"framework": "torch", "layers": layers}),)

    scaling = Question(question().fields, NETWORK, FREE, measured, 64)
    step = scaling.point(1).step_s
    assert 0.85 * step.value < step.low < 0.95 * step.value and 1.05 * step.value < step.high < 1.18 * step.value


def test_the_command_prints_a_table_and_a_summary_and_draws_a_figure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    out = tmp_path / "new" / "scaling.svg"
    assert (
        main(
            [
                *ENGINEERS,
                "--workload",
                "vgg_a",
                "--minibatch",
                "96",
                "--nodes",
                "1..64",
                "--out",
                str(out),
                "--results",
                str(tmp_path),
            ]
        )
        == 0
    )
    printed = capsys.readouterr().out
    assert "132.9 M parameters" in printed and "worth it up to" in printed and "evidence: simulated" in printed
    assert "left out: 64 nodes do not divide" in printed
    text = out.read_text()
    assert text.startswith("<?xml") and "simulated" in text and "#0068a8" in text
    assert not any(stand_in in text for stand_in in ("#010101", "#020202", "#050000", "#060001")), (
        "colours of pages only"
    )


def test_the_output_says_whether_predictions_were_validated_on_this_machine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    arguments = [*ENGINEERS, "--workload", "cd_dnn", "--nodes", "1,2", "--json", "--results", str(tmp_path)]
    assert main(arguments) == 0
    assert json.loads(capsys.readouterr().out)["label"]["standing"] == "not validated here"
    judged = {"machine": machine_id(), "code": code_digest("simulated"), "judged_on": [{"fabric.costs": "fitted"}]}
    missed = verdict(
        "not reproduced",
        "validation.prediction",
        {"what": "predictions", "evidence": "simulated", "alike": ["fabric.costs"]},
        **judged,
        missed_by=0.07,
    )
    write_claims(tmp_path / "claims" / "validation.small.json", [missed])
    assert main([word if word != "--json" else f"--out={tmp_path / 'p.svg'}" for word in arguments]) == 0
    printed = capsys.readouterr().out
    assert "evidence: simulated (validation missed); costs of messages" in printed
    assert "  validation missed: validation.prediction (size smoke) is missed by 0.07 x" in printed
    write_claims(tmp_path / "claims" / "validation.small.json", [missed.model_copy(update={"verdict": "reproduced"})])
    assert main(arguments) == 0
    label = json.loads(capsys.readouterr().out)["label"]
    assert label["standing"] == "not validated here"
    assert label["why"] == ["predictions: not judged on fabric.costs stated"]
    assert [(note["code"], note["values"]["fields"]) for note in label["notes"]] == [
        ("not covered", {"fabric.costs": "stated"})
    ]


def test_a_users_own_module_gives_a_workload_and_json_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "my_own_models.py").write_text(
        "from torch import nn\ndef net():\n"
        "    return nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 10))\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    arguments = [
        *ENGINEERS,
        "--workload",
        "my_own_models:net",
        "--input",
        "64",
        "--nodes",
        "1,3",
        "--json",
        "--results",
        str(tmp_path),
    ]
    assert main(arguments) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["parameters"] == 64 * 512 + 512 + 512 * 10 + 10
    assert [point["nodes"] for point in result["points"]] == [1, 3]
    assert result["evidence"] == "simulated" and {"value", "low", "high"} == set(result["points"][1]["efficiency"])
    assert list(tmp_path.glob("*.png")) == []


def test_a_picture_is_drawn_only_where_out_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    arguments = [*ENGINEERS, "--workload", "vgg_a", "--nodes", "1,2", "--results", str(tmp_path)]
    assert main(arguments) == 0
    assert list(tmp_path.iterdir()) == []
    printed = capsys.readouterr().out
    assert any(f"at 2 nodes it is {words}; {HINTS[name]}" in printed for name, words in RESOURCES.items())
    assert main([*arguments, "--out", "pictures"]) == 0
    drawn = [Path("pictures", f"vgg_a-25g-tcp{suffix}") for suffix in (".png", ".svg")]
    printed = capsys.readouterr().out
    assert all(path.is_file() and str(path) in printed for path in drawn)


def test_every_resource_that_is_halved_has_its_words_and_its_advice():
    served = question(strategy="parameter_server", servers=1)
    case = served.case(4)
    changed = halved(case, served.profiles(case)[0], cluster_of(case), UNSURE.central())
    assert {*changed, "stragglers"} == set(RESOURCES) == set(HINTS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--workload", "vgg_b"], "unknown workload 'vgg_b'; did you mean 'vgg_a'?"),
        (["--workload", "vgg_a", "--fabric", "25gb"], "unknown fabric '25gb'; did you mean '25g'?"),
        (["--workload", "vgg_a", "--transport", "tpc"], "unknown transport 'tpc'; did you mean 'tcp'?"),
        (["--workload", "vgg_a", "--strategy", "symc"], "--strategy: unknown strategy 'symc'"),
        (["--workload", "vgg_a", "--servers", "3"], "--servers: strategy 'sync_overlap' has no option 'servers'"),
        (
            ["--workload", "vgg_a", "--profile", "xeon"],
            "--profile names a node type, --peak gives its rate: one of them",
        ),
        (["--workload", "vgg_a", "--efficiency", "7"], "--efficiency '7'"),
        (["--workload", "vgg_a", "--minibatch", "7", "--nodes", "2,4"], "no such number divides --minibatch 7"),
        (["--workload", "vgg_a", "--minibatch", "0"], "--minibatch 0: give at least one sample"),
        (["--workload", "vgg_a", "--input", "3x8x8"], "--input is for a torch module"),
        (["--workload", "vgg_a", "--out", "a.jpg"], "a picture ends in .png"),
        (["--workload", "vgg_a", "--transports", "tcp,mpi", "--out", "a.png"], "(--transports) have no picture"),
        (["--workload", "vgg_a", "--least", "2"], "--least 2"),
        (["--workload", "vgg_a", "--transport", "shm"], "--transport shm ends at the node"),
        (["--workload", "torch.nn:ReLU", "--width", "0.5"], "reduce networks of ours"),
    ],
)
def test_a_mistake_is_one_line_with_the_nearest_name(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert main([*ENGINEERS, *arguments, "--results", str(tmp_path)]) == 2
    printed = capsys.readouterr().err
    assert message in printed and printed.count("\n") == 1


def test_what_is_missing_is_named_with_the_command_that_makes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["predict", "--workload", "vgg_a", "--fabric", "25g", "--results", str(tmp_path)]) == 2
    assert "scaleproof profile --workload vgg_a --batch 32" in capsys.readouterr().err
    assert main(["predict", "--workload", "vgg_a", "--fabric", "25g", "--peak", "2", "--results", str(tmp_path)]) == 2
    assert "--efficiency LOW..HIGH is missing" in capsys.readouterr().err


def test_a_profile_measured_on_this_machine_is_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    network = dnn.cd_dnn(None, 0.25)
    reckoned = peak_profile(network, 32, "xeon_e5_2698v3_x2", 0.5, width=0.25)
    measured = reckoned.model_copy(
        update={"framework": "torch", "threads": 1, "node": machine_id(), "workload": "cd_dnn"}
    )
    write(measured, tmp_path / "machines" / machine_id())
    arguments = [
        "predict",
        "--workload",
        "cd_dnn",
        "--width",
        "0.25",
        "--fabric",
        "10g",
        "--nodes",
        "1,2",
        "--json",
        "--results",
        str(tmp_path),
    ]
    assert main(arguments) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["points"][0]["step_s"]["value"] == pytest.approx(reckoned.step_s)
    assert any("every node computes as long as every other" in assumption for assumption in result["assumed"])
    assert result["compute"] == "this machine, 1 thread" and any(
        "not fitted on this machine" in assumption for assumption in result["assumed"]
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1..8", [1, 2, 4, 8]), ("3..20", [3, 4, 8, 16, 20]), ("5,1,5", [1, 5]), ("7", [7]), ("4..4", [4])],
)
def test_numbers_of_nodes_are_parsed(text: str, expected: list[int]):
    assert nodes_of(text) == expected


@pytest.mark.parametrize("text", ["", "0", "8..1", "1..", "a", "1..9999", "-1"])
def test_invalid_numbers_of_nodes_are_refused(text: str):
    with pytest.raises(SpecError, match="--nodes"):
        nodes_of(text)


@pytest.mark.parametrize(("text", "expected"), [("0.5", (0.5, 0.5)), ("0.4..0.6", (0.4, 0.6)), ("1", (1.0, 1.0))])
def test_shares_of_a_peak_are_parsed(text: str, expected: tuple[float, float]):
    assert efficiency_of(text) == expected


@pytest.mark.parametrize("text", ["", "0", "0.6..0.4", "1.2", "x", "0.1..0.2..0.3", "nan"])
def test_invalid_shares_of_a_peak_are_refused(text: str):
    with pytest.raises(SpecError, match="--efficiency"):
        efficiency_of(text)
