"""Under which campaign id each launch of a call of `run` is recorded."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from itertools import groupby

from scaleproof.core.campaign import CampaignIds
from scaleproof.core.record_schema import Record
from scaleproof.launch.nodes.allocated_nodes import AllocatedNodes, machine_of
from scaleproof.record.store import Store
from scaleproof.record.used_code import is_current
from scaleproof.spec.plan import PlannedLaunch


class CallIds:
    """The ids of one call. It draws one of its own: launches after a pause do not share the luck of those before it.
    Only a block that was begun before keeps its id, so that no pair is lost."""

    # Which arms of a broken block lie before the pause is chance, since its order was drawn before the first launch.

    def __init__(
        self, plan: Sequence[PlannedLaunch], store: Store, allocated: AllocatedNodes | None = None, again: bool = False
    ) -> None:
        self.own, self.again = secrets.token_hex(4), again
        self._begun = _begun(records_of(plan, store, allocated))

    def of(self, planned: PlannedLaunch) -> CampaignIds:
        """The ids of a launch; none of a prediction, which has no luck."""
        if planned.case.plugin("fabric").predicted:
            return CampaignIds()
        begun = self._begun.get((planned.campaign, planned.plan_index))
        if begun is None:
            return CampaignIds(self.own)
        made_anew = self.again and begun.block  # old records may have no id to name
        return CampaignIds(self.own, begun.block) if made_anew else begun


def records_of(plan: Sequence[PlannedLaunch], store: Store, allocated: AllocatedNodes | None) -> Iterable[Record]:
    """Records of the launches' cases by this code on this machine or these nodes."""
    for case in {id(launch.case): launch.case for launch in plan}.values():
        machine = machine_of(case, allocated)
        for record in store.records(case.case_id):
            if record.machine == machine and is_current(record.code, case.fabric):
                yield record


def _begun(records: Iterable[Record]) -> dict[tuple[int, int], CampaignIds]:
    """The ids of each block of which a launch ended well, by campaign and repetition. Of several, in merged folders or
    after `--again`, those that most launches have; of equally many the last."""
    counted: dict[tuple[int, int], list[tuple[CampaignIds, str]]] = {}
    for record in records:
        if record.status == "ok" and not record.case.plugin("fabric").predicted:
            key = record.campaign, record.plan_index
            counted.setdefault(key, []).append((record.campaign_ids, str(record.started_at)))
    return {key: _most(of_block) for key, of_block in counted.items()}


def _most(of_block: list[tuple[CampaignIds, str]]) -> CampaignIds:
    groups = [(ids, list(same)) for ids, same in groupby(sorted(of_block), key=lambda each: each[0])]
    return max(groups, key=lambda group: (len(group[1]), max(started for _, started in group[1])))[0]
