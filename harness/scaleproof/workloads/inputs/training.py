"""Checks D1 to D12 of training data, before anything is timed. Each data set has its own in its file."""

from __future__ import annotations

from typing import Any

from scaleproof.spec import registry
from scaleproof.spec.case import TrainCase
from scaleproof.workloads.data import Source, open_data
from scaleproof.workloads.dataset import Dataset
from scaleproof.workloads.inputs.findings import Finding, settle
from scaleproof.workloads.networks import Network


def checked_data(case: TrainCase, network: Network, seed: int, rank: int, record: list[dict[str, Any]]) -> Source:
    """The case's data for one rank. Rank 0 checks them first and adds the findings to its `record`. Raises BadInput
    when nothing should be timed on them."""
    if rank != 0:
        return open_data(case, network, seed, rank)
    dataset = registry.get("dataset", case.dataset)
    if isinstance(dataset, Dataset) and dataset.check_file is not None:
        settle(record, [dataset.check_file()])
    data = open_data(case, network, seed, rank)
    settle(record, training_inputs(data))
    return data


def training_inputs(data: Source) -> list[Finding]:
    """All checks of a case's data as rank 0 holds them; a few ms."""
    return sorted(data.findings().findings, key=lambda finding: int(finding.check[1:]))
