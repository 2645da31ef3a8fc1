"""Profiles are computed from the papers' counts, survive a file, and are refused for another network or machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scaleproof.spec import registry
from scaleproof.spec.case import TrainCase
from scaleproof.spec.errors import SpecError
from scaleproof.spec.gpu_node import rank_type
from scaleproof.workloads.networks import Network
from scaleproof.workloads.profile import (
    LayerTimes,
    Profile,
    Spread,
    command,
    path_of,
    peak_profile,
    profile_of,
    read,
    write,
)
from tests.short_form import case_from

NODE = "xeon_e5_2698v3_x2"
MACHINE = "0123456789ab"


def network(name: str) -> Network:
    made: Network = registry.load("workload", name)(None, 1.0)
    return made


def replayed(**fields: Any) -> TrainCase:
    values = {
        "suite": "test",
        "experiment": "test",
        "arm": "test",
        "program": "train",
        "ranks": 2,
        "strategy": "sync_overlap",
        "transport": "tcp",
        "collective": "ring",
        "workload": "vgg_a",
        "workload.image_side": 32,
        "workload.width": 0.25,
        "minibatch": 8,
        "steps": 1,
        "compute": "replay",
    }
    case = case_from(values | fields)
    assert isinstance(case, TrainCase)
    return case


def measured(case: TrainCase, node: str = MACHINE) -> Profile:
    """A file as `scaleproof profile` writes it, with made-up times."""
    layers = [
        layer.model_copy(update={"forward_s": Spread(median=1e-3, low=9e-4, high=2e-3, n=6)})
        for layer in reckoned(case).layers
    ]
    return reckoned(case).model_copy(
        update={"framework": "torch", "threads": 1, "node": node, "layers": tuple(layers), "taken": "in a test"}
    )


def reckoned(case: TrainCase) -> Profile:
    made: Network = registry.load("workload", case.workload)(
        case.workload_options.image_side, case.workload_options.width
    )
    return peak_profile(
        made,
        case.minibatch // case.ranks,
        NODE,
        0.5,
        image_side=case.workload_options.image_side,
        width=case.workload_options.width,
    )


@pytest.mark.parametrize(
    ("name", "forward_gflop", "training_gflop"),
    [("vgg_a", 15.218, 45.481), ("overfeat_fast", 5.603, 16.590), ("cd_dnn", 0.0902, 0.2688)],
)
def test_times_are_the_papers_counts_over_the_rate_that_compute_reaches(
    name: str, forward_gflop: float, training_gflop: float
) -> None:
    profile, rate = peak_profile(network(name), 4, NODE, 0.5), rank_type(NODE).peak_flops * 0.5
    assert profile.forward_s * rate / 4e9 == pytest.approx(forward_gflop, rel=1e-3)
    assert profile.step_s * rate / 4e9 == pytest.approx(training_gflop, rel=1e-3)


def test_weights_gradients_come_before_those_of_the_input_which_the_first_layer_has_not() -> None:
    layers = [layer for layer in peak_profile(network("vgg_a"), 1, NODE, 1.0).layers if layer.mac]
    assert layers[0].backward_s.median == pytest.approx(layers[0].weight_s.median)
    assert all(layer.backward_s.median == pytest.approx(2 * layer.weight_s.median) for layer in layers[1:])


def test_a_file_is_read_back_as_it_was_and_found_for_its_case(tmp_path: Path) -> None:
    case = replayed()
    profile, folder = measured(case), tmp_path / MACHINE
    assert read(write(profile, folder)) == profile == profile_of(case, folder)


def test_a_node_type_needs_no_file(tmp_path: Path) -> None:
    case = replayed(profile=NODE, efficiency=0.5)
    assert profile_of(case, tmp_path) == reckoned(case)


def test_a_missing_profile_is_one_line_with_the_command_that_makes_it(tmp_path: Path) -> None:
    with pytest.raises(
        SpecError, match=r"scaleproof profile --workload vgg_a --image-side 32 --width 0.25 --batch 4`"
    ) as raised:
        profile_of(replayed(), tmp_path / MACHINE)
    assert "\n" not in str(raised.value)
    assert (
        command(replayed(width=1.0, image_side=None, threads_per_rank=2))
        == "scaleproof profile --workload vgg_a --batch 4 --threads 2"
    )


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ({"minibatch": 16}, "is of batch 8, not 4"),
        ({"workload.width": 0.5}, "is of another size of vgg_a: layer conv1 has"),
        ({"workload": "overfeat_fast", "workload.image_side": 103}, "is of another network: overfeat_fast with"),
    ],
)
def test_a_profile_of_something_else_is_refused(other: dict[str, Any], why: str, tmp_path: Path) -> None:
    case, folder = replayed(), tmp_path / MACHINE
    path = path_of(folder, "vgg_a", 32, 0.25, 4, "torch", 1)
    path.parent.mkdir(parents=True)
    path.write_text(measured(replayed(**other)).model_dump_json())
    with pytest.raises(SpecError, match=why):
        profile_of(case, folder)


def test_a_profile_of_another_machine_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / MACHINE
    write(measured(replayed(), node="ba9876543210"), folder)
    with pytest.raises(SpecError, match=f"is of another machine, ba9876543210, not {MACHINE}"):
        profile_of(replayed(), folder)


def test_an_invalid_profile_is_a_one_line_error(tmp_path: Path) -> None:
    path = tmp_path / "torn.json"
    path.write_text('{"schema_version": 1')
    with pytest.raises(SpecError, match=r"torn.json: no profile of this version"):
        read(path)


def test_a_layer_whose_weights_take_longer_than_all_of_its_backward_pass_is_refused() -> None:
    with pytest.raises(ValueError, match="weight_s is longer than backward_s"):
        LayerTimes(
            name="conv1",
            mac=1,
            forward_s=Spread(median=1.0),
            backward_s=Spread(median=1.0),
            weight_s=Spread(median=2.0),
        )
