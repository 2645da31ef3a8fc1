"""The place of a launch among the campaigns of its experiment. A campaign is one call of `run`: its launches share the
state of the machine at that time."""

from __future__ import annotations

from typing import NamedTuple

from pydantic import Field

from scaleproof.core.node_schema import RecordPart


class Campaign(NamedTuple):
    """One campaign: the number that its plan gives it, and its id, since several calls of `run` and merged folders may
    have equal numbers."""

    number: int
    id: str


class CampaignIds(NamedTuple):
    """The ids of a launch, as its record has them."""

    campaign_id: str = ""
    replaces: str = ""

    @property
    def block(self) -> str:
        """What the launches of a block share, also after one of them was made again."""
        return self.replaces or self.campaign_id


class InCampaign(RecordPart):
    """The part of a record that says which launch of which campaign it is."""

    plan_index: int = Field(description="repetition of the case, counted over all campaigns of a plan")
    campaign: int = Field(0, description="number of the campaign in its plan, from 0")
    campaign_id: str = Field(
        "",
        description="drawn by each call of `run`; launches that complete a block which an earlier call began have the "
        "id of that block; empty: a prediction, or a record that is older than this field",
    )
    replaces: str = Field(
        "",
        description="of a launch that was made again (`--again`): the id of the campaign in which its block was first "
        "made; empty: no other launch",
    )

    @property
    def of_campaign(self) -> Campaign:
        """The campaign of the launch."""
        return Campaign(self.campaign, self.campaign_id)

    @property
    def campaign_ids(self) -> CampaignIds:
        """Both ids."""
        return CampaignIds(self.campaign_id, self.replaces)

    @property
    def block(self) -> tuple[int, str]:
        """Launches of one block form pairs: the same repetition in the same campaign."""
        return self.plan_index, self.campaign_ids.block
