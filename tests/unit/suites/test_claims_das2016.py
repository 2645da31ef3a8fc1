"""The suite das2016: every row of the paper is there with its value, and every claim can find launches or says what it
needs."""

import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from scaleproof.claims.arithmetic import Published
from scaleproof.claims.claims_file import read_claims, write_claims
from scaleproof.claims.claims_yaml import load_claims, load_published
from scaleproof.claims.judge import judge_suite
from scaleproof.claims.launch_pool import matches
from scaleproof.claims.made_up import Event, MadeUp, events
from scaleproof.claims.metrics import METRICS
from scaleproof.claims.metrics_pairs import EQUIVALENT
from scaleproof.claims.suite_metrics import load_models, suite_metrics
from scaleproof.record.store import Store
from scaleproof.spec.errors import SpecError
from scaleproof.spec.plan import PlannedLaunch
from scaleproof.spec.suite import Suite, load_suite
from tests.unit.claims.claims_samples import arithmetic
from tests.unit.claims.made_up_launches import judged

ROOT = Path(__file__).resolve().parents[3]
GATED = {
    "vgga.mb512.n128.speedup": 90,
    "vgga.mb256.n64.speedup": 53,
    "overfeat.mb256.n64.speedup": 42,
    "cddnn.n16.speedup": 6.5,
    "aws.n16.speedup": 14,
    "vgga.mb512.n128.efficiency": 0.7031,
    "vgga.mb256.n64.efficiency": 0.8281,
    "overfeat.mb256.n64.efficiency": 0.6562,
    "cddnn.n16.efficiency": 0.4062,
    "aws.n16.efficiency": 0.875,
    "alg.ratio.overfeat.derived": 250.7,
    "alg.ratio.vgga.derived": 1218.1,
    "minpts.vgga.fdr.derived": 1,
    "minpts.overfeat.fdr.derived": 2,
    "minpts.vgga.10gbe.derived": 2,
    "minpts.overfeat.10gbe.derived": 6,
    "intel2015.alexnet.n64.hours": 5,
    "seide2012.cddnn.pipeline.g2": 1.9,
    "seide2012.cddnn.pipeline.g4": 3.3,
}


@pytest.fixture(scope="module")
def suite() -> Suite:
    return load_suite("das2016", ROOT / "suites")


def test_published_rows_are_those_of_the_paper(suite: Suite) -> None:
    rows = load_published(suite.folder)
    assert len(rows) == 38
    assert {name.removeprefix("das2016."): row.value for name, row in rows.items() if row.gate} == GATED
    assert Counter(row.provenance for row in rows.values()) == {
        "paper": 8,
        "derived": 11,
        "memory_high": 2,
        "memory_medium": 12,
        "memory_low": 5,
    }


def test_every_row_has_its_claim_and_no_claim_of_the_paper_is_ours(suite: Suite) -> None:
    claims = load_claims(suite)
    assert [claim.form.id for claim in claims if claim.row] == list(load_published(suite.folder))
    assert all(claim.form.id.startswith("das2016.own.") for claim in claims if claim.row is None)
    assert {claim.form.id.rpartition(".")[2] for claim in claims if "own.equivalence" in claim.form.id} == {
        "shm",
        "tcp",
        "grpc",
        "gloo",
        "mpi",
        "horovod",
    }


@pytest.mark.parametrize("size", ["small", "full"])
def test_levels_are_compared_over_cases_that_exchange_something(suite: Suite, size: str) -> None:
    for claim in load_claims(suite):
        if claim.form.metric == "level_error":
            cases = [
                case
                for case in suite.experiment(str(claim.form.experiment)).size(size).cases
                if matches(case, claim.form.select)
            ]
            assert cases and all(case.transport for case in cases), claim.form.id


def test_what_is_judged_is_run_at_smoke_size_at_least_six_times(suite: Suite) -> None:
    for claim in load_claims(suite):
        if claim.form.experiment is None or "smoke" not in suite.experiment(claim.form.experiment).sizes:
            continue
        size = suite.experiment(claim.form.experiment).size("smoke")
        launches = sum(size.launches for case in size.cases if matches(case, claim.form.select))
        assert launches >= 6 or claim.recalled or claim.form.kind == "context", claim.form.id
        if claim.form.control:
            assert any(matches(case, claim.form.control.select) for case in size.cases), claim.form.id
        if claim.form.against and claim.form.kind != "context":  # what is only shown may stand at a larger size
            assert any(matches(case, claim.form.against) for case in size.cases), claim.form.id


def test_without_any_launch_nothing_is_reproduced_but_arithmetic(suite: Suite, tmp_path: Path) -> None:
    results = {result.id: result for result in judge_suite(suite, "smoke", Store(tmp_path))}
    assert {result.kind for result in results.values() if result.verdict == "reproduced"} == {"consistency"}
    assert sum(result.verdict == "reproduced" for result in results.values()) == 15
    assert results["das2016.vgga.mb512.n128.speedup"].verdict == "not run at this size"
    assert results["das2016.intel2015.alexnet.n64.hours"].verdict == "not runnable here"
    assert results["das2016.own.equivalence.tcp"].verdict == "not run at this size"
    recalled = [result for result in results.values() if result.provenance and result.provenance.startswith("memory")]
    assert len(recalled) == 19
    assert {result.verdict for result in recalled} == {"unverified"}


def test_size_ci_gives_no_verdicts(suite: Suite, tmp_path: Path) -> None:
    assert {result.verdict for result in judge_suite(suite, "ci", Store(tmp_path))} == {None}


def test_claims_on_the_same_training_have_the_tolerance_of_the_tests(suite: Suite) -> None:
    rules = {
        claim.form.id: claim.form.rule for claim in load_claims(suite) if claim.form.metric == "training_difference"
    }
    assert len(rules) == 7
    assert {rule.tolerance for rule in rules.values() if rule is not None} == {EQUIVALENT}


def test_claims_survive_the_way_to_disk(suite: Suite, tmp_path: Path) -> None:
    results = judge_suite(suite, "smoke", Store(tmp_path))
    write_claims(tmp_path / "claims" / "das2016.smoke.json", results)
    assert read_claims(tmp_path / "claims" / "das2016.smoke.json").claims == tuple(results)


@pytest.mark.parametrize("part", ["communication_off", "compute_off"])
def test_a_step_shorter_than_its_part_fails_a_check_and_refutes_no_claim(part: str) -> None:
    """No step can be shorter than the same step without communication or compute: a bound that cannot be missed."""
    name = f"das2016.own.floor.{part}"

    def at(seconds: float) -> Callable[[PlannedLaunch], MadeUp]:
        return lambda launch: events(Event("step", 0.0, seconds if launch.case.arm == "shm" else 1.0))

    assert judged(name, at(1.1)).verdict == "holds"
    assert judged(name, at(0.9)).verdict == "fails"


def test_largest_node_counts_follow_from_the_fewest_points(suite: Suite) -> None:
    metric = suite_metrics(suite.folder)["max_nodes"]
    for claim in load_claims(suite):
        if claim.row and claim.row.metric == "min_points_per_node":
            assert arithmetic(metric, **claim.form.x, minibatch=256) == claim.row.x["max_nodes_at_minibatch_256"]


def test_flop_per_byte_depends_on_the_output_map_and_the_points_alone(suite: Suite) -> None:
    models = vars(load_models(suite.folder / "models" / "__init__.py"))
    for layer in models["conv_layers"]("overfeat_fast") + models["conv_layers"]("vgg_a"):
        pixels = layer.output_shape[1] * layer.output_shape[2]
        assert models["compute_flop"](layer, 4) / models["exchange_nbytes"](layer, 1) == 1.5 * pixels * 4
        assert models["compute_flop"](layer, 1) / models["exchange_nbytes"](layer, 0) == 0.75 * pixels


@pytest.mark.parametrize(
    ("layer", "nodes", "minibatch", "closed", "best", "megabytes"),
    [
        (("vgg_a", "fc6"), 64, 256, 2.00, 1, (51.4, 51.4, 64.2, 109, 209, 822)),
        (("vgg_a", "fc7"), 64, 256, 2.00, 1, (8.39, 8.39, 10.5, 17.8, 34.1, 134)),
        (("vgg_a", "fc7"), 128, 512, 4.00, 4, (16.8, 10.5, 8.39, 10.5, 17.8, 134)),
        (("overfeat_fast", "fc6"), 64, 256, 2.31, 2, (75.5, 66.1, 75.5, 123, 231, 906)),
        (("cd_dnn", "h2"), 16, 1024, 2.83, 2, (16.8, 12.6, 12.6, 18.9, 33.6, 33.6)),
        (("cd_dnn", "h2"), 16, 256, 1.41, 1, (4.19, 6.29, 9.44, 17.3, 33.6, 33.6)),
        (("cd_dnn", "out"), 16, 1024, 1.33, 1, (16.8, 27.4, 42.3, 78.3, 152, 152)),
    ],
)
def test_hybrid_groups_are_the_divisor_with_the_fewest_bytes(
    suite: Suite,
    layer: tuple[str, str],
    nodes: int,
    minibatch: int,
    closed: float,
    best: int,
    megabytes: tuple[float, ...],
) -> None:
    models = vars(load_models(suite.folder / "models" / "__init__.py"))
    x = models["DividedLayer"](workload=layer[0], layer=layer[1], nodes=nodes, minibatch=minibatch)
    assert (models["hybrid_groups"](x, Published()), models["hybrid_groups_closed"](x, Published())) == (
        best,
        pytest.approx(closed, abs=0.005),
    )
    sent_megabytes = [
        models["hybrid_nbytes"](models["layer_of"](x), nodes, minibatch, groups) / 1e6
        for groups in (1, 2, 4, 8, 16, nodes)
    ]
    assert sent_megabytes == [pytest.approx(value, rel=0.006) for value in megabytes]


@pytest.mark.parametrize(
    ("size", "shares"), [("smoke", {0.4, 0.8}), ("small", {0.4, 0.6, 0.8}), ("full", {0.4, 0.6, 0.8})]
)
def test_the_abstract_is_judged_over_all_that_may_be_true_of_its_hardware(
    suite: Suite, size: str, shares: set[float]
) -> None:
    cases = [case for case in suite.experiment("scaling").size(size).cases if case.fabric == "simulated"]
    for claim in load_claims(suite):
        if claim.row and claim.row.where == "abstract" and claim.form.experiment == "scaling":
            mine = [case for case in cases if matches(case, claim.form.select)]
            assert {case.value("compute.efficiency") for case in mine} == shares
            other = "workload" if ".aws." in claim.form.id else "fabric.cluster"
            assert claim.form.over == ("compute.efficiency", other) and len({case.value(other) for case in mine}) == 2
            assert (
                len({tuple(case.value(field) for field in claim.form.over) for case in mine})
                == 2 * len(shares)
                == len(mine)
            )
            for case in mine:
                point = {field: case.value(field) for field in claim.form.over}
                assert sum(matches(base, {**(claim.form.against or {}), **point}) for base in cases) == 1, (
                    claim.form.id,
                    point,
                )
            assert not {claim.form.rule.name if claim.form.rule else ""} - {"within"}


@pytest.mark.parametrize(
    ("workload", "overlapped", "not_overlapped"), [("vgg_a", 1218.1, 609.1), ("overfeat_fast", 250.7, 125.3)]
)
def test_flop_per_byte_over_all_conv_layers(
    suite: Suite, workload: str, overlapped: float, not_overlapped: float
) -> None:
    metric = suite_metrics(suite.folder)["flop_per_byte"]
    for overlap, expected in ((1, overlapped), (0, not_overlapped)):
        assert arithmetic(metric, workload=workload, points=1, overlap=overlap) == pytest.approx(expected, abs=0.05)


def test_every_metric_has_its_page(suite: Suite) -> None:
    for metric in suite_metrics(suite.folder).values():
        assert (ROOT / metric.page).read_text().startswith(f"# {metric.name}"), metric.page
    assert {path.stem for path in (ROOT / "docs" / "metrics").glob("*.md")} >= set(METRICS)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"id": "das2016.nosuch", "needs": "x"}, "has no row 'das2016.nosuch'"),
        (
            {
                "id": "das2016.own.x",
                "origin": "own",
                "statement": "s",
                "unit": "x",
                "metric": "stp_s",
                "rule": {"name": "ordering"},
            },
            "did you mean 'step_s'",
        ),
        ({"id": "das2016.cddnn.n16.speedup", "needs": "x", "experiment": "throughputs"}, "did you mean 'throughput'"),
        ({"id": "das2016.cddnn.n16.speedup", "needs": "x", "select": {"rank": 2}}, "did you mean 'ranks'"),
        ({"id": "das2016.cddnn.n16.speedup", "statement": "mine"}, "stands in published.yaml"),
        (
            {
                "id": "das2016.own.x",
                "origin": "own",
                "statement": "s",
                "unit": "x",
                "direction": "higher",
                "experiment": "throughput",
                "metric": "speedup",
                "against": {"ranks": 1},
                "rule": {"name": "at_least", "value": 6.5},
            },
            "equals the published value of 'das2016.cddnn.n16.speedup'",
        ),
    ],
)
def test_a_wrong_claim_is_one_line_with_file_and_line(
    suite: Suite, tmp_path: Path, entry: dict[str, object], message: str
) -> None:
    folder = tmp_path / "das2016"
    folder.mkdir()
    for name in ("suite.yaml", "published.yaml"):
        (folder / name).write_text((suite.folder / name).read_text())
    shutil.copytree(suite.folder / "models", folder / "models")
    (folder / "claims.yaml").write_text("# first line\n" + yaml.safe_dump([entry]))
    with pytest.raises(SpecError) as raised:
        load_claims(load_suite("das2016", tmp_path))
    assert message in str(raised.value)
    assert "claims.yaml:" in str(raised.value)
    assert "\n" not in str(raised.value)
