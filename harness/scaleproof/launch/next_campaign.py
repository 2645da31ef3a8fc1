"""Which campaign of an experiment a call of `run` makes, and the id under which its launches are recorded."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterable, Sequence

from scaleproof.core.record_schema import Record
from scaleproof.launch.nodes.allocated_nodes import AllocatedNodes, machine_of
from scaleproof.record.store import Store
from scaleproof.record.used_code import is_current
from scaleproof.spec.plan import PlannedLaunch


def next_campaign(plan: Sequence[PlannedLaunch], store: Store, allocated: AllocatedNodes | None = None) -> int:
    """The first campaign with a launch that was never tried; else the first with one that failed; else the last."""
    if all(launch.campaign == 0 for launch in plan):
        return 0
    tried, ended = set[tuple[str, int]](), set[tuple[str, int]]()
    for record in _records(plan, store, allocated):
        tried.add((record.case_id, record.plan_index))
        if record.status != "failed":
            ended.add((record.case_id, record.plan_index))
    for done in (tried, ended):
        for launch in plan:
            if (launch.case.case_id, launch.plan_index) not in done:
                return launch.campaign
    return plan[-1].campaign


def campaign_id(launches: Sequence[PlannedLaunch], store: Store, allocated: AllocatedNodes | None = None) -> str:
    """The id of the campaign that these launches belong to: that of its records here, so that a campaign that was
    interrupted, or is made launch by launch, goes on, or a new one. Of several in merged folders the one with most
    records goes on."""
    numbers = {launch.campaign for launch in launches}
    known = Counter(
        record.campaign_id
        for record in _records(launches, store, allocated)
        if record.campaign in numbers and not record.case.plugin("fabric").predicted
    )
    return known.most_common(1)[0][0] if known else secrets.token_hex(4)


def _records(launches: Sequence[PlannedLaunch], store: Store, allocated: AllocatedNodes | None) -> Iterable[Record]:
    """Records of the launches' cases by this code on this machine or these nodes."""
    for case in {id(launch.case): launch.case for launch in launches}.values():
        machine = machine_of(case, allocated)
        for record in store.records(case.case_id):
            if record.machine == machine and is_current(record.code, case.fabric):
                yield record
