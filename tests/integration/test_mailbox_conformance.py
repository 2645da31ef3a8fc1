"""One suite for all mailboxes: messages, calls, puts, gets, flags, compare-and-swap, cancelling and faults, on 2 to 4
processes of every transport that declares one."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import psutil
import pytest

from scaleproof.rank.unsupervised_ranks import run_ranks
from scaleproof.spec import registry
from tests.integration.conformance import mailbox_set
from tests.integration.test_conformance import (
    COMPOSED,
    LOSS_S,
    SET_S,
    START_S,
    STARTED,
    case_of,
    entry_of,
    folder,
    mpirun,
    require,
)

TRANSPORTS = [
    name for name in registry.with_trait("transport", "mailbox") if not registry.get("transport", name).devices
]
"""Those that need a device: test_rdma.py runs this suite in guests."""


def sets() -> Iterator[tuple[str, int]]:
    for transport in TRANSPORTS:
        yield from ((transport, ranks) for ranks in ((3,) if transport in COMPOSED else (2, 3, 4)))


@pytest.mark.parametrize(("transport", "ranks"), list(sets()))
def test_a_mailbox_conforms(transport: str, ranks: int) -> None:
    require(transport)
    children = psutil.Process().children(recursive=True)
    with folder() as results:
        if entry_of(transport).launcher in STARTED:
            process = mpirun("mailbox_set.check_mailbox", case_of(transport, ranks), results, SET_S)
            problems = [process.stderr] if process.returncode else []
        else:
            body = partial(mailbox_set.check_mailbox, results=results)
            problems = [error for error in run_ranks(case_of(transport, ranks), body, SET_S) if error]
        checked: list[dict[str, Any]] = [
            json.loads(line) for path in sorted(results.glob("*.jsonl")) for line in path.read_text().splitlines()
        ]
    problems += [f"left {child}" for child in psutil.Process().children(recursive=True) if child not in children]
    problems += [f"{each['name']}: {each['detail']}" for each in checked if not each["passed"]]
    if problems and checked:
        problems.append(f"the last check that was done: {checked[-1]['name']}")
    assert not problems, "\n".join(problems[:20])
    assert len({each["name"].rpartition("rank ")[2] for each in checked}) == ranks


@pytest.mark.parametrize("fault", ["a_peer_dies", "a_peer_leaves"])
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_who_waits_for_a_rank_that_is_gone_has_an_error_within_seconds(transport: str, fault: str) -> None:
    require(transport)
    with folder() as results:
        start = time.monotonic()
        if entry_of(transport).launcher in STARTED:
            process = mpirun(f"mailbox_set.{fault}", case_of(transport, 3), results, SET_S)
            assert process.returncode != 0 and time.monotonic() - start < START_S + LOSS_S, process.stderr
            return
        errors = run_ranks(case_of(transport, 3), partial(getattr(mailbox_set, fault), results=results), SET_S)
        assert errors[:2] == ["", ""]
        for rank in range(2):
            outcomes, seconds = json.loads((results / f"{rank}.loss").read_text())
            assert outcomes == ["PeerLost"] * 3 and seconds < LOSS_S, f"rank {rank}: {outcomes} after {seconds:.1f} s"


@pytest.mark.parametrize("transport", [name for name in TRANSPORTS if "kill" in registry.get("transport", name).bears])
def test_ranks_go_on_without_one_that_a_fault_kills(transport: str) -> None:
    require(transport)
    with folder() as results:
        start = time.monotonic()
        errors = run_ranks(case_of(transport, 3), partial(mailbox_set.outlive_a_peer, results=results), SET_S)
        assert errors[:2] == ["", ""]
        assert time.monotonic() - start < START_S
        for rank in range(2):
            outcomes = json.loads((results / f"{rank}.outlived").read_text())
            assert outcomes == ["lost 2"] * 3


@pytest.mark.parametrize("transport", registry.names("transport"))
def test_a_transport_has_a_mailbox_or_says_why_not(transport: str) -> None:
    plugin = registry.get("transport", transport)
    assert bool(plugin.mailbox) != bool(plugin.no_mailbox)
