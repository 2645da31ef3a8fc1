"""The network of a case, and the checks of its workload before a process starts. Imports no framework."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING

from scaleproof.spec import registry
from scaleproof.spec.errors import FieldError
from scaleproof.workloads.datasets import DATA_SETS
from scaleproof.workloads.layers import Norm
from scaleproof.workloads.networks import Network
from scaleproof.workloads.strips import check_division

if TYPE_CHECKING:
    from scaleproof.spec.case import TrainCase


def network_of(case: TrainCase) -> Network:
    """The case's network, resolved."""
    return _resolved(case.workload, case.workload_options.image_side, case.workload_options.width)


def work_factor(case: TrainCase, forward_alone: bool = False) -> float:
    """FLOP per sample of the full network over those of the case's: 1 where it is not reduced."""
    ours, full = network_of(case), _resolved(case.workload, None, 1.0)
    return full.forward_flop / ours.forward_flop if forward_alone else full.train_flop / ours.train_flop


@lru_cache
def _resolved(workload: str, image_side: int | None, width: float) -> Network:
    """A suite has hundreds of cases of the same few networks."""
    network: Network = registry.load("workload", workload)(image_side, width)
    return network


def check_workload(case: TrainCase) -> None:
    """Raises FieldError if the workload's options are wrong."""
    network = network_of(case)
    _check_data(case, network)
    if case.plugin("strategy").divides_layers:
        groups = case.value("strategy.groups", 0)
        check_division(network, case.ranks // groups if groups else 1)
    _check_normalised_values(case, network)


def _check_data(case: TrainCase, network: Network) -> None:
    name = case.workload_options.data
    if name not in DATA_SETS:  # synthetic data have the shape of the network
        return
    data = DATA_SETS[name]
    needed = (data.inputs, data.vocabulary, data.classes, data.label_shape)
    if (prod(network.input_shape), network.vocabulary, network.classes, network.label_shape) != needed:
        raise FieldError(
            "workload.data",
            f"workload {case.workload!r} does not fit data {name!r} ({data.summary}); "
            f"use {' or '.join(_workloads_for(name))}",
        )
    if case.minibatch > data.training:
        raise FieldError(
            "minibatch",
            f"minibatch {case.minibatch} is larger than the training set of data {name!r}, {data.training} rows",
        )


def _workloads_for(data: str) -> list[str]:
    """Names of the workloads that can learn a data set."""
    workloads = {name: registry.load("workload", name) for name in registry.names("workload")}
    return [name for name, workload in workloads.items() if data in getattr(workload, "data_sets", ())]


def _check_normalised_values(case: TrainCase, network: Network) -> None:
    """A batch normalisation needs more than one value of each map."""
    if case.minibatch != case.ranks:
        return
    for layer in network.layers:
        if isinstance(layer.spec, Norm) and prod(layer.output_shape[1:]) == 1:
            raise FieldError(
                "workload",
                f"workload {case.workload!r}: layer {layer.name!r} would normalise a single value; "
                "give more than one sample per rank",
            )
