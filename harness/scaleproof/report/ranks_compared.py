"""Whether one rank of a training is slower than the others."""

from __future__ import annotations

import numpy as np

from scaleproof.claims import stragglers
from scaleproof.report.groups import Groups, by_arm_and_ranks, heading, summary
from scaleproof.report.numbers import percent, significant
from scaleproof.report.sections import Cell, Row, Table


def ranks_compared(groups: Groups) -> Table:
    """Time of each rank without exposed communication, and whether one rank is slower than the others."""
    rows = []
    for key, runs in groups.items():
        for (name, ranks), group in by_arm_and_ranks(runs).items():
            times = [
                times
                for run in group
                if ranks > 1 and run.record and (times := stragglers.rank_times(run.record, run.samples)) is not None
            ]
            own = [table["own"].tolist() for table in times if len(table) == ranks]
            finding = stragglers.find(own)
            if finding is None:
                continue
            each = " / ".join(significant(value * 1e3) for value in np.median(own, axis=0))
            spread = summary(value for run in group if (value := run.metric("rank_spread")) is not None)
            cells = [
                Cell(name),
                Cell(str(ranks)),
                Cell(each),
                Cell(percent(spread.median)),
                Cell(straggler_text(finding)),
                Cell(str(finding.n)),
            ]
            rows.append(Row(heading(key, groups), cells))
    caption = (
        "Ranks compared: own time per step (step without exposed communication, ms, by rank: medians over launches), "
        "spread in a launch, and the slowest rank "
        f"where it is more than {percent(stragglers.SHARE)} above the median of the others and the order within "
        "launches is not chance (permutation test, 5 %)."
    )
    return Table(caption, ["arm", "ranks", "own time by rank (ms) ↓", "spread ↓", "straggler", "launches"], rows)


def straggler_text(finding: stragglers.SlowestRank) -> str:
    """The cell of the table about stragglers."""
    if finding.straggler:
        return f"rank {finding.rank}: {percent(finding.share)} more (p = {finding.p:.2g})"
    return "no straggler" if finding.n >= 6 else "no straggler named: fewer than 6 launches"
