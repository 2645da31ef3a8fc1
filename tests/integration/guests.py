"""Launches in guests for tests: whether they can run here, their cases, and how to find a node's kernel."""

from __future__ import annotations

import contextlib
from typing import Any

import psutil
import pytest

from scaleproof.fabric.guests import guest_kernels
from scaleproof.fabric.guests.guest_plan import INTERFACE
from scaleproof.fabric.guests.guests import Guests
from scaleproof.launch.teardown import processes
from tests.short_form import case_from
from tests.waiting import wait_until


def need_guests() -> None:
    """Fails where only the kernel is missing, which `make test` brings; skips on a machine that cannot have guests."""
    hindrance = Guests(INTERFACE).obstacle()
    if hindrance is None:
        return
    if guest_kernels.uml() is None:
        pytest.fail("; ".join(hindrance))
    pytest.skip("not runnable here: " + "; ".join(hindrance))


def guest_case(**fields: Any) -> Any:
    """Ping-pong over tcp between two nodes, unless the fields say otherwise."""
    base = {
        "suite": "tests",
        "experiment": "guests",
        "arm": "guests",
        "fabric": "guests",
        "transport": "tcp",
        "collective": "ring",
        "ranks": 2,
        "nodes": 2,
    }
    program = {"program": "transfer", "sizes": [8, 1 << 20], "iterations": 6} if "program" not in fields else {}
    return case_from({**base, **program, **fields})


def kernel_of(launch: str, node: int, within_s: float = 30.0) -> psutil.Process:
    """The process that is a node's User-Mode Linux kernel."""

    def kernels() -> list[psutil.Process]:
        matches = []
        for pid in processes(launch):
            with contextlib.suppress(psutil.Error):
                process = psutil.Process(pid)
                if f"umid=node{node}" in process.cmdline():
                    matches.append(process)
        return matches

    return wait_until(kernels, f"node {node} of launch {launch} has started", within_s)[0]
