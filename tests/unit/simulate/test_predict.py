"""The costs that a case is simulated with, the inputs that a prediction is drawn from, and the messages for missing
inputs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scaleproof.record.digest import machine_id
from scaleproof.simulate.binding import binding_resource
from scaleproof.simulate.buffered import buffered_nbytes
from scaleproof.simulate.case_costs import cost_model
from scaleproof.simulate.cost_file import (
    AllReduceCost,
    Costs,
    Fit,
    GammaCost,
    LineCost,
    Parameter,
    RoundsCost,
    SegmentCost,
    TransportCost,
    write_costs,
)
from scaleproof.simulate.predict import Predictor, drawn_profile, inputs_of, predict
from scaleproof.simulate.step_engine import simulate
from scaleproof.simulate.uncertain import Uncertain
from scaleproof.spec.case import AnyCase, TrainCase
from scaleproof.spec.errors import SpecError
from scaleproof.spec.link_rates import PAYLOAD
from scaleproof.workloads.profile import LayerTimes, Profile, Spread, write
from tests.short_form import case_from

NO_FIT = Fit(r_squared=1.0, median_error=0.0, worst_error=0.0, worst_nbytes=0)


def case_of(**fields: Any) -> AnyCase:
    common = {
        "program": "collective",
        "suite": "x",
        "experiment": "e",
        "arm": "a",
        "fabric": "simulated",
        "transport": "tcp",
        "collective": "ring",
        "ranks": 4,
    }
    return case_from({**common, "sizes": [1024, 1 << 20], **fields})


def training(**fields: Any) -> AnyCase:
    common = {
        "program": "train",
        "strategy": "sync_overlap",
        "workload": "dnn_digits",
        "minibatch": 64,
        "steps": 2,
        "warmup": 1,
        "sizes": None,
    }
    return case_from(
        {
            name: value
            for name, value in {
                **{key: value for key, value in case_of().written().items() if key not in ("program", "sizes")},
                "ranks": 4,
                **common,
                **fields,
            }.items()
            if value is not None
        }
    )


def parameter(value: float, launches: int = 6) -> Parameter:
    return (
        Parameter(value=value, low=value / 2, high=value * 2)
        if launches >= 6
        else Parameter(value=value, low=None, high=None)
    )


def line(*parts: tuple[int | None, float, float], launches: int = 6) -> LineCost:
    segments = tuple(
        SegmentCost(upto_nbytes=upto, alpha_s=parameter(alpha, launches), beta_s_per_byte=parameter(beta, launches))
        for upto, alpha, beta in parts
    )
    return LineCost(launches=launches, segments=segments, fit=NO_FIT, aicc={}, points=())


def fitted(
    transport: str,
    fabric: str,
    transfer: LineCost | None,
    gamma: float | None,
    mbit: float | None = None,
    launches: int = 6,
) -> TransportCost:
    """`launches`: of the all-reduces."""
    rounds = (
        RoundsCost(
            algorithm="ring",
            assumed=False,
            call_s=parameter(0.0, launches),
            gammas=(GammaCost(nbytes=1, s_per_byte=parameter(gamma, launches)),),
            fit=NO_FIT,
            points=(),
        )
        if gamma
        else None
    )
    return TransportCost(
        arm=transport,
        transport=transport,
        library="",
        fabric=fabric,
        nodes=1,
        link_mbit=mbit,
        link_delay_ms=0.0,
        interface="lo",
        evidence="measured",
        transfer=transfer,
        all_reduces=(AllReduceCost(ranks=2, call=line((None, 2e-4, 1e-9), launches=launches), rounds=rounds),),
        runs=(),
    )


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """tcp fitted on the host in two pieces and over a link of 100 Mbit/s, horovod's calls alone."""
    transports = (
        fitted("tcp", "host", line((65536, 1e-5, 2e-9), (None, 5e-5, 1e-9)), 3e-10),
        fitted("tcp", "netns", line((None, 4e-5, 8e-8)), 1e-10, 100.0),
        fitted("horovod", "host", None, None),
    )
    return stored(tmp_path, *transports)


def stored(folder: Path, *transports: TransportCost) -> Path:
    write_costs(
        folder,
        Costs(
            machine=machine_id(),
            code="",
            fitted_at="",
            suite="micro",
            experiment="costs",
            size="smoke",
            transports=transports,
        ),
    )
    return folder


def profile(case: AnyCase, low: float = 0.9, high: float = 1.2, n: int = 6) -> Profile:
    from scaleproof.workloads.case_network import network_of

    assert isinstance(case, TrainCase)

    def time(seconds: float) -> Spread:
        return (
            Spread(median=seconds, low=seconds * low, high=seconds * high, n=n)
            if n >= 6
            else Spread(median=seconds, n=n)
        )

    layers = tuple(
        LayerTimes(name=layer.name, mac=layer.mac, forward_s=time(1e-3), backward_s=time(2e-3), weight_s=time(1e-3))
        for layer in network_of(case).layers
    )
    return Profile(
        workload="dnn_digits",
        batch=16,
        framework="torch",
        threads=1,
        node=machine_id(),
        taken="made up",
        layers=layers,
        update_s=time(1e-3),
    )


def test_costs_fitted_on_this_machine_are_preferred(results: Path) -> None:
    costs = cost_model(case_of(), results, machine_id())
    assert (costs.upto_nbytes, [alpha.value for alpha in costs.alphas], costs.gammas[0].value.value) == (
        (65536, None),
        [1e-5, 5e-5],
        3e-10,
    )
    assert costs.goodput == PAYLOAD and "fabric host" in costs.source
    assert [assumption.partition(" costs")[0] for assumption in costs.assumed] == ["a message between nodes"], (
        "this machine's loopback stands for a network"
    )
    sizes = np.array([1.0, 65536.0, 65537.0])
    assert list(costs.central().alpha(sizes)) == [1e-5, 1e-5, 5e-5] and list(costs.central().beta(sizes)) == [
        2e-9,
        2e-9,
        1e-9,
    ]


def test_costs_of_the_same_slow_link_come_first(results: Path) -> None:
    assert "fabric netns" in cost_model(case_of(link_mbit=100), results, machine_id()).source
    assert "fabric host" in cost_model(case_of(link_mbit=1000), results, machine_id()).source


def test_whole_calls_of_a_library_are_converted_to_messages_of_a_ring(results: Path) -> None:
    """Two messages of half the array with two ranks: a call of 0.2 ms and 1 ns a byte is two messages of 0.1 ms and 1
    ns a byte."""
    costs = cost_model(case_of(transport="horovod", collective="native"), results, machine_id())
    assert (costs.alphas[0].value, costs.betas[0].value, costs.gammas[0].value.value) == (
        pytest.approx(1e-4),
        pytest.approx(1e-9),
        0.0,
    )
    assert any("run as a ring" in assumption for assumption in costs.assumed) and any(
        "whole calls" in assumption for assumption in costs.assumed
    )


def test_other_hardware_has_stated_costs_unless_the_case_says_otherwise(results: Path) -> None:
    elsewhere = {"compute.profile": "xeon_e5_2698v3_x2", "compute.efficiency": 0.5}
    assert cost_model(training(**elsewhere), results, machine_id()).source.startswith("stated")
    assert cost_model(training(**elsewhere, costs="fitted"), results, machine_id()).source.startswith("fitted")
    assert cost_model(case_of(costs="stated"), results, machine_id()).source.startswith("stated")
    assert any(
        "was not fitted" in assumption
        for assumption in cost_model(case_of(transport="grpc"), results, machine_id()).assumed
    )
    with pytest.raises(SpecError, match="'grpc' was not fitted on this machine; type "):
        cost_model(case_of(transport="grpc", costs="fitted"), results, machine_id())


def test_a_fit_to_too_few_launches_is_stated_as_an_assumption(tmp_path: Path) -> None:
    sparse = stored(
        tmp_path,
        fitted("tcp", "host", line((None, 1e-5, 2e-9), launches=5), 3e-10),
        fitted("horovod", "host", None, None, launches=1),
    )
    for fields in ({}, {"transport": "horovod", "collective": "native"}):
        costs = cost_model(case_of(**fields), sparse, machine_id())
        assert costs.source.startswith("stated") and any(
            "fitted to fewer than 6 launches here" in assumption for assumption in costs.assumed
        )
        with pytest.raises(SpecError, match="was fitted to fewer than 6 launches here; type "):
            cost_model(case_of(costs="fitted", **fields), sparse, machine_id())


def test_a_gamma_without_an_interval_is_stated(tmp_path: Path) -> None:
    costs = cost_model(
        case_of(), stored(tmp_path, fitted("tcp", "host", line((None, 1e-5, 2e-9)), 3e-10, launches=1)), machine_id()
    )
    assert (
        costs.alphas[0].value == 1e-5
        and costs.gammas[0].value.low is not None
        and any("gamma is stated" in assumption for assumption in costs.assumed)
    )


def test_a_slowed_prediction_never_falls_back_to_stated_costs(tmp_path: Path) -> None:
    with pytest.raises(
        SpecError, match="'tcp' was not fitted on this machine, and stated costs are of hardware at full speed"
    ):
        cost_model(case_of(shrink=4), tmp_path, machine_id())


def test_sockets_take_messages_before_their_receivers_and_what_a_library_does_is_not_known() -> None:
    assert buffered_nbytes(case_of()) == buffered_nbytes(case_of(transport="grpc", collective="tree")) == 4 << 20
    assert (
        buffered_nbytes(case_of(transport="mpi", launcher="mpirun")) == buffered_nbytes(case_of(transport="shm")) == 0
    )
    assert buffered_nbytes(case_of(transport="gloo", collective="native")) == 0


def test_a_profile_of_few_processes_is_named_as_an_assumption(results: Path) -> None:
    for n, named in ((6, False), (5, True), (1, True)):
        write(profile(training(), n=n), results / "machines" / machine_id())
        assert (
            any(
                "would show how it spreads" in assumption for assumption in inputs_of(training(), results).costs.assumed
            )
            is named
        )


def test_equal_seeds_repeat_a_prediction_and_other_draws_differ(results: Path) -> None:
    inputs = inputs_of(case_of(), results)
    ends = [float(predict(inputs, seed).end.max()) for seed in (None, None, 1, 1, 2)]
    assert ends[0] == ends[1] and ends[2] == ends[3] and len(set(ends)) == 3


def test_equal_parameters_are_drawn_alike_in_all_cases(results: Path) -> None:
    tree, ring = (inputs_of(case_of(collective=name), results).costs.drawn(7) for name in ("tree", "ring"))
    assert tree == ring != inputs_of(case_of(), results).costs.central()


def test_draws_are_as_wide_as_the_interval_and_on_its_side() -> None:
    draws = np.array([Uncertain("x", 10.0, 5.0, 40.0).drawn(seed) for seed in range(2000)])
    assert np.quantile(draws, [0.025, 0.5, 0.975]) == pytest.approx([5.0, 10.0, 40.0], rel=0.15)
    assert {Uncertain("x", 3.0).drawn(seed) for seed in range(5)} == {3.0}
    assert min(Uncertain("y", 1.0, 0.0, 2.0).drawn(seed) for seed in range(500)) >= 0.0


def test_all_times_of_a_drawn_profile_scale_together(results: Path) -> None:
    measured = profile(training())
    drawn = drawn_profile(measured, 3)
    assert drawn is not None
    factors = {
        round(own.forward_s.median / other.forward_s.median, 9)
        for own, other in zip(drawn.layers, measured.layers, strict=True)
    }
    assert len(factors) == 1 and factors != {1.0}
    assert drawn_profile(measured, None) is measured


def test_a_case_without_a_profile_says_what_to_type(results: Path) -> None:
    with pytest.raises(
        SpecError,
        match="this machine has no profile of dnn_digits.*type `scaleproof profile --workload dnn_digits --batch 16`",
    ):
        Predictor(results).inputs(training())
    assert inputs_of(training(compute="none"), results).profile is None


def test_other_inputs_are_another_prediction(results: Path) -> None:
    case = training()
    write(profile(case), results / "machines" / machine_id())
    before = Predictor(results).inputs(case)
    assert (
        Predictor(results).inputs(case)
        == before
        != replace(inputs_of(case, results), profile=profile(case, low=0.5)).digest
    )
    write(profile(case, high=2.0), results / "machines" / machine_id())
    assert Predictor(results).inputs(case) != before


def test_cases_that_cannot_be_simulated_are_refused_beforehand(results: Path) -> None:
    with pytest.raises(SpecError, match="strategy 'tensorflow_parameter_server' is not simulated; "):
        Predictor(results).inputs(
            training(
                strategy="tensorflow_parameter_server", transport="tensorflow-grpc", collective="native", compute="none"
            )
        )
    elsewhere = {"compute.profile": "xeon_e5_2698v3_x2", "compute.efficiency": 0.5}
    with pytest.raises(
        SpecError, match="layer 'out' of 'dnn_digits' has 10 features for the 16 ranks of a group; give more groups"
    ):
        Predictor(results).inputs(training(strategy="hybrid", ranks=16, groups=1, **elsewhere))
    with pytest.raises(SpecError, match="nodes asked for, the description has"):
        Predictor(results).inputs(case_of(ranks=4096, cluster="dgx1v_like"))


def test_a_program_that_only_processes_can_run_is_not_simulated(results: Path, tmp_path: Path) -> None:
    (tmp_path / "programs").mkdir()
    (tmp_path / "programs" / "mine.py").write_text("def run(context): ...\n")
    fields = {"program": "own", "suite": "x", "experiment": "e", "arm": "a", "entry": "mine", "ranks": 2}
    case = case_from({**fields, "fabric": "simulated", "transport": "tcp"})
    with pytest.raises(SpecError, match="mine.py has a function `run`, which only processes can call"):
        Predictor(results).inputs(case, str(tmp_path / "programs"))


def test_a_transport_that_is_not_installed_can_be_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    from scaleproof.launch.preflight.case_preflight import obstacle
    from scaleproof.spec import registry

    missing = registry.Availability("transport", "rdma", False, "", "no verbs device here", "load its driver")
    monkeypatch.setattr(registry, "availability", lambda *_, **__: missing)
    case = case_of(transport="rdma")
    assert obstacle(case) is None
    assert obstacle(case_from(case.written() | {"fabric": "host", "interface": "lo", "nodes": 1})) is not None


def test_a_case_that_exchanges_nothing_has_stated_costs(tmp_path: Path) -> None:
    fields = {"strategy": "local_only", "workload": "dnn_digits", "data": "digits", "minibatch": 64, "steps": 2}
    alone = {"program": "train", "suite": "s", "experiment": "e", "arm": "a", "ranks": 1, "fabric": "simulated"}
    assert cost_model(case_from({**alone, **fields}), tmp_path, "machine").source.startswith("stated")


@pytest.mark.parametrize("cost", ["alpha", "gamma"])
def test_a_control_is_predicted_without_one_cost(tmp_path: Path, cost: str) -> None:
    fabric = {"name": "simulated", "link_mbit": 1000.0, "costs": "stated"}
    ends = [
        float(predict(inputs_of(case_of(fabric=fabric | {f"{cost}_times": times}), tmp_path)).end.max())
        for times in (1.0, 0.0)
    ]
    assert ends[1] < ends[0]


def test_more_time_a_byte_is_that_of_links_and_of_software(tmp_path: Path) -> None:
    fabric = {"name": "simulated", "link_mbit": 1000.0, "costs": "stated"}
    plain, slower = (
        inputs_of(case_of(fabric=fabric | {"beta_times": times}), tmp_path).costs.central() for times in (1.0, 1.25)
    )
    assert slower.goodput == pytest.approx(plain.goodput / 1.25)
    assert slower.segments[0].beta == pytest.approx(1.25 * plain.segments[0].beta)
    assert slower.segments[0].alpha == plain.segments[0].alpha


@pytest.mark.parametrize(("link", "binds"), [({"link_mbit": 10.0}, "link"), ({"link_delay_ms": 50.0}, "latency")])
def test_a_record_names_the_resource_that_binds_its_prediction(
    results: Path, link: dict[str, float], binds: str
) -> None:
    write(profile(training()), results / "machines" / machine_id())
    fabric = {"name": "simulated", "costs": "stated", **link}
    inputs = inputs_of(training(fabric=fabric), results)
    assert isinstance(inputs.case, TrainCase) and inputs.profile is not None
    assert binding_resource(inputs.case, inputs.profile, inputs.cluster, inputs.costs.central()) == binds


def test_what_binds_is_found_from_a_few_steps(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without jitter a step is like the one before it, so that a training of many steps asks no more of the engine."""
    looked_at: list[int] = []

    def simulated(case: TrainCase, *args: Any, **kwargs: Any) -> Any:
        looked_at.append(case.steps + case.warmup)
        return simulate(case, *args, **kwargs)

    write(profile(training()), results / "machines" / machine_id())
    fabric = {"name": "simulated", "costs": "stated", "link_mbit": 10.0}
    inputs = inputs_of(training(fabric=fabric, steps=500), results)
    assert isinstance(inputs.case, TrainCase) and inputs.profile is not None
    monkeypatch.setattr("scaleproof.simulate.binding.simulate", simulated)
    assert binding_resource(inputs.case, inputs.profile, inputs.cluster, inputs.costs.central()) == "link"
    assert max(looked_at) <= 8
