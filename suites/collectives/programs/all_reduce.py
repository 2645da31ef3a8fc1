"""A ping-pong between ranks 0 and 1 over the case's sizes, then the all-reduce of its algorithm over the same ones.

Events and checks are those of programs `transfer` and `collective`. The timed region, in which interfaces are read,
holds the all-reduces alone. Ranks mostly wait for their links (option `slept`): there are more of them than cores.
"""

from __future__ import annotations

from typing import Any

from scaleproof.collectives.group import Group, open_group
from scaleproof.core.context import RankContext
from scaleproof.programs import collective, transfer
from scaleproof.programs.common import timed_region
from scaleproof.spec.case import CollectiveCase, OwnCase, TransferCase


def run(context: RankContext) -> None:
    """Both sweeps over one transport; one rank has no partner for a ping-pong."""
    case = context.case
    assert isinstance(case, OwnCase)
    group = open_group(context)
    assert isinstance(group, Group)
    if case.ranks > 1:
        transfer.sweep(context, TransferCase.model_validate(_shared(case, "transfer")), group.transport)
    with timed_region(context, group):
        collective.sweep(context, CollectiveCase.model_validate(_shared(case, "collective")), group)


def _shared(case: OwnCase, program: str) -> dict[str, Any]:
    """The fields that this program's case has too."""
    values = case.model_dump(exclude={"entry", "source", "options"})
    return {**values, "program": program}
