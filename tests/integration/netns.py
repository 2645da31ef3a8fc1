"""Launches on nodes of namespaces for tests: whether they can run here, and their cases."""

from __future__ import annotations

from typing import Any

import pytest

from scaleproof.fabric.guests.guest_plan import INTERFACE
from scaleproof.fabric.netns.netns import Netns
from scaleproof.spec import registry
from tests.short_form import case_from


def need_netns() -> None:
    """Skips on a machine that gives no namespaces."""
    hindrance = Netns(INTERFACE).obstacle()
    if hindrance is not None:
        pytest.skip("not runnable here: " + "; ".join(hindrance))


def netns_case(**fields: Any) -> Any:
    """An all-reduce over tcp between two nodes, unless the fields say otherwise."""
    base: dict[str, Any] = {
        "suite": "tests",
        "experiment": "netns",
        "arm": "netns",
        "fabric": "netns",
        "transport": "tcp",
        "ranks": 2,
    }
    base |= (
        {}
        if "program" in fields
        else {"program": "collective", "operation": "all_reduce", "sizes": [4096], "iterations": 3, "warmup": 1}
    )
    transport = registry.get("transport", fields.get("transport", "tcp"))
    base |= {"collective": "ring"} if transport.point_to_point else {}
    base |= {"launcher": transport.launcher} if transport.launcher else {}
    return case_from({**base, **fields})
