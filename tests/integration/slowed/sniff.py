"""The sniff test where one node's processor time is cut to a small part."""

from __future__ import annotations

from scaleproof.calibrate.sniffing import sniff
from scaleproof.fabric.quota import Quota
from scaleproof.launch.base import SCRATCH
from scaleproof.rank.context import RankContext

NODE, CORES = 2, 0.1


def run(context: RankContext) -> None:
    """On that node, inside the quota from the beginning."""
    if context.rank == NODE:
        quota = Quota(f"{SCRATCH}{context.launch_id}", 1, CORES)
        quota.join(0)
        context.facts["quota"] = quota.told()
    sniff.run(context)
