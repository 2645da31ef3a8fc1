"""The sniff test where one node's processor time is cut to a small part."""

from __future__ import annotations

from scaleproof.calibrate.sniffing import sniff
from scaleproof.core.context import RankContext
from scaleproof.fabric.netns.core_quota import Quota
from scaleproof.launch.launchers.launcher_contract import SCRATCH

NODE, CORES = 2, 0.1


def run(context: RankContext) -> None:
    """On that node, inside the quota from the beginning."""
    if context.rank == NODE:
        quota = Quota(f"{SCRATCH}{context.launch_id}", 1, CORES)
        quota.join(0)
        context.facts["quota"] = quota.report()
    sniff.run(context)
