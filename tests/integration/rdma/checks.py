"""What ranks in guests do to prove transport rdma: `python -m tests.integration.rdma.checks CHECK...` in every node;
results go to the shared folder.

A check is a function of `ThisNode`; it raises when something is wrong. With a real device the same module runs on the
host.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scaleproof.core.context import RankContext
from scaleproof.core.location import ADDRESS, NODE
from scaleproof.fabric.guests.guest_plan import INTERFACE
from scaleproof.rank.unsupervised_ranks import run_some_ranks
from scaleproof.transports.verbs.rdma import Rdma
from tests.short_form import ring_case

CHECKS: dict[str, Callable[[ThisNode], None]] = {}
REGION_MIB = "transport.region_mib"
LARGE_REGION: dict[str, int] = {REGION_MIB: 128}
"""Every page of a region is touched when it is registered, which a guest does slowly: most checks need 16 MiB."""


@dataclass(frozen=True, slots=True)
class ThisNode:
    """The node that a check runs on, one of `nodes`; `shared` is a folder of this check alone that all nodes see."""

    node: int
    nodes: int
    address: str
    shared: Path

    def run(self, body: Callable[[RankContext], None], ranks: int, timeout_s: float = 60.0, **fields: Any) -> list[str]:
        """Errors of this node's ranks."""
        mine = [rank for rank in range(ranks) if rank * self.nodes // ranks == self.node]
        return run_some_ranks(case_of(ranks, **fields), mine, self.shared, self.address, body, timeout_s)

    def succeed(self, body: Callable[[RankContext], None], ranks: int, timeout_s: float = 60.0, **fields: Any) -> None:
        """All of this node's ranks end without an error."""
        errors = [error for error in self.run(body, ranks, timeout_s, **fields) if error]
        assert not errors, "\n".join(errors)


def check(function: Callable[[ThisNode], None]) -> Callable[[ThisNode], None]:
    """Register a check under its name."""
    CHECKS[function.__name__] = function
    return function


def case_of(ranks: int, **fields: Any) -> Any:
    """A case over rdma in guests."""
    interface = os.environ.get("RDMA_TEST_INTERFACE", INTERFACE)
    return ring_case("rdma", ranks, **{"interface": interface, REGION_MIB: 16, **fields})


def connect(context: RankContext) -> Rdma:
    """The transport of this rank."""
    return Rdma.connect(context)


def main(names: list[str]) -> int:
    """Run checks in order; a line of JSON per check."""
    node, nodes, shared = (
        int(os.environ.get(NODE, "0")),
        int(os.environ.get("NODES", "1")),
        Path(os.environ["SCALEPROOF_SHARED"]),
    )
    failed = 0
    for number, name in enumerate(names):
        folder = shared / f"check-{number}"
        folder.mkdir(exist_ok=True)
        start, error = time.monotonic(), ""
        try:
            CHECKS[name](ThisNode(node, nodes, os.environ.get(ADDRESS, ""), folder))
        except BaseException:
            error = traceback.format_exc()
            failed += 1
        (shared / f"{number}-{node}.result").write_text(
            json.dumps({"check": name, "node": node, "seconds": round(time.monotonic() - start, 2), "error": error})
        )
    return 1 if failed else 0


if __name__ == "__main__":
    from tests.integration.rdma import checks, faults, moving, remote, wires  # noqa: F401  they register themselves

    sys.exit(checks.main(sys.argv[1:]))
