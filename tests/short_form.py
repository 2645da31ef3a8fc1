"""Cases for tests, written short: options of plugins by their own names, and those that a plugin lacks are left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scaleproof.spec.case import AnyCase, CollectiveCase, TrainCase, parse_case
from scaleproof.spec.choice import nested
from scaleproof.spec.earlier_form import converted


def case_from(values: Mapping[str, Any]) -> AnyCase:
    """A case of fields and options: `{"strategy": "parameter_server", "servers": 2, ...}`."""
    return parse_case(nested(converted(values), lenient=True))


def ring_case(transport: str = "tcp", ranks: int = 2, **fields: Any) -> CollectiveCase:
    """A collective of 8 bytes over `transport`, by a ring; `fields` differ from that."""
    base = {
        "program": "collective",
        "suite": "s",
        "experiment": "e",
        "arm": "a",
        "ranks": ranks,
        "transport": transport,
        "collective": "ring",
        "sizes": [8],
    }
    case = case_from(base | fields)
    assert isinstance(case, CollectiveCase)
    return case


def train_case(**fields: Any) -> TrainCase:
    """A step of one rank that exchanges nothing; `fields` differ from that, and name the workload."""
    base = {
        "program": "train",
        "suite": "s",
        "experiment": "e",
        "arm": "a",
        "ranks": 1,
        "strategy": "local_only",
        "steps": 1,
        "minibatch": 64,
    }
    case = case_from(base | fields)
    assert isinstance(case, TrainCase)
    return case
