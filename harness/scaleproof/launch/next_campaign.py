"""Which campaign of an experiment a call of `run` makes."""

from __future__ import annotations

from collections.abc import Sequence

from scaleproof.launch.campaign_ids import records_of
from scaleproof.launch.nodes.allocated_nodes import AllocatedNodes
from scaleproof.record.store import Store
from scaleproof.spec.plan import PlannedLaunch


def next_campaign(plan: Sequence[PlannedLaunch], store: Store, allocated: AllocatedNodes | None = None) -> int:
    """The first campaign with a launch that was never tried; else the first with one that failed; else the last."""
    if all(launch.campaign == 0 for launch in plan):
        return 0
    tried, ended = set[tuple[str, int]](), set[tuple[str, int]]()
    for record in records_of(plan, store, allocated):
        tried.add((record.case_id, record.plan_index))
        if record.status != "failed":
            ended.add((record.case_id, record.plan_index))
    for done in (tried, ended):
        for launch in plan:
            if (launch.case.case_id, launch.plan_index) not in done:
                return launch.campaign
    return plan[-1].campaign
