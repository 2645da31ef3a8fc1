"""The network of a case, and the checks of its workload before a process starts. Imports no framework."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING

from scaleproof.spec import registry
from scaleproof.spec.errors import FieldError
from scaleproof.workloads.dataset import Dataset, Rows
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
    dataset = registry.get("dataset", case.dataset)
    rows = dataset.rows if isinstance(dataset, Dataset) else None
    if rows is None:  # made in the shape of the network
        return
    if not rows.fit(network):
        raise FieldError(
            "workload.data",
            f"workload {case.workload!r} does not fit data {dataset.name!r} ({dataset.summary}); "
            f"use {' or '.join(workloads_for(rows))}",
        )
    if case.minibatch > rows.training:
        raise FieldError(
            "minibatch",
            f"minibatch {case.minibatch} is larger than the training set of data {dataset.name!r}, "
            f"{rows.training} rows",
        )


def workloads_for(rows: Rows) -> list[str]:
    """Names of the workloads that take the inputs and labels of a data set at full size."""
    return [name for name in registry.names("workload") if rows.fit(_resolved(name, None, 1.0))]


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
