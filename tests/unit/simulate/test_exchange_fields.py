"""Fields of a case's exchange: channels, order, what a forward pass waits for, nodes of a hierarchical collective. They
are refused where no plugin supports them."""

from __future__ import annotations

from typing import Any

import pytest

from scaleproof.simulate.alpha_beta_fit import Segment
from scaleproof.simulate.chakra.chakra_export import trace_of
from scaleproof.simulate.cost_model import MessageCosts
from scaleproof.spec.case import TrainCase
from scaleproof.spec.errors import FieldError, SpecError
from tests.short_form import case_from

CASE: dict[str, Any] = {
    "program": "train",
    "suite": "s",
    "experiment": "e",
    "arm": "a",
    "ranks": 4,
    "transport": "tcp",
    "collective": "ring",
    "strategy": "sync_overlap",
    "workload": "dnn_digits",
    "minibatch": 64,
    "steps": 2,
    "fabric": "simulated",
}


@pytest.mark.parametrize(
    ("fields", "field", "why"),
    [
        (
            {"strategy.channels": 2, "fabric": "netns", "transport": "ucx"},
            "strategy.channels",
            "a process connects transport 'ucx' once, for one channel; take 'grpc' or 'shm' or 'tcp'",
        ),
        (
            {"strategy.channels": 2, "fabric": "host", "transport": "gloo", "collective": "native"},
            "strategy.channels",
            "transport 'gloo' once",
        ),
        (
            {"strategy.channels": 2, "fabric": "host", "strategy.communication": "main"},
            "strategy.channels",
            "the main thread makes one call after the other",
        ),
        (
            {"strategy.channels": 2, "fabric": "host", "strategy.bucket_order": "front_first"},
            "strategy.bucket_order",
            "calls in bucket order",
        ),
        ({"strategy.bucket_order": "front_first", "fabric": "host"}, "strategy.bucket_order", "'simulated' has it"),
        (
            {"strategy.channels": 2, "transport": "horovod", "collective": "native", "transport.fusion_mib": 64},
            "strategy.channels",
            "fuses",
        ),
        (
            {"strategy.bucket_order": "front_first", "strategy.communication": "main"},
            "strategy.bucket_order",
            "the main thread makes one call after the other",
        ),
        ({"strategy.channels": 2, "strategy.forward_waits": "layer"}, "strategy.channels", "leave out forward_waits"),
        ({"collective": "hierarchical"}, "collective", "set nodes, or use 'ring'"),
        ({"collective": "hierarchical", "nodes": 4}, "collective", "as many ranks on each, at least two"),
        ({"collective": "hierarchical", "nodes": 3}, "collective", "not for 4 ranks on 3"),
        ({"collective": "hierarchical", "nodes": 1, "fabric": "netns"}, "collective", "several nodes"),
        (
            {"collective": "hierarchical", "nodes": 2, "strategy": "hybrid"},
            "collective",
            "groups of ranks, which know no nodes",
        ),
    ],
)
def test_exchange_fields_that_no_plugin_supports_are_refused_by_name(
    fields: dict[str, Any], field: str, why: str
) -> None:
    with pytest.raises(ValueError, match=why) as raised:
        case_from({**CASE, **fields})
    error = raised.value.errors()[0]["ctx"]["error"]  # type: ignore[attr-defined]
    assert isinstance(error, FieldError) and error.field == field


@pytest.mark.parametrize(
    "fields",
    [
        {"strategy.channels": 2},
        {"strategy.channels": 2, "fabric": "host"},
        {"strategy.channels": 2, "fabric": "netns"},
        {"strategy.bucket_order": "front_first", "strategy.forward_waits": "layer"},
        {"strategy.communication": "main"},
        {"strategy.communication": "main", "fabric": "netns"},
        {"collective": "hierarchical", "nodes": 2},
        {"collective": "hierarchical", "nodes": 2, "fabric": "netns"},
    ],
)
def test_every_exchange_field_changes_the_case_id(fields: dict[str, Any]) -> None:
    case = case_from({**CASE, **fields})
    assert case.case_id != case_from({**CASE, "fabric": case.fabric}).case_id


def test_cases_without_exchange_fields_keep_their_id() -> None:
    assert not {"channels", "strategy.bucket_order", "forward_waits"} & set(
        case_from(CASE).canonical().replace('"', " ").split()
    )


@pytest.mark.parametrize(
    "fields", [{"strategy.channels": 2}, {"strategy.communication": "main"}, {"strategy.forward_waits": "layer"}]
)
def test_exchange_fields_cannot_be_written_as_a_trace(fields: dict[str, Any]) -> None:
    case = case_from({**CASE, **fields, "compute": "none"})
    assert isinstance(case, TrainCase)
    with pytest.raises(SpecError, match=f"{next(iter(fields))} .*: a trace has only nodes and their dependencies"):
        trace_of(case, None, MessageCosts((Segment(None, 0.0, 0.0),), 0.0))
