"""The question that a claim puts to launches, and the measurement that answers it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scaleproof.claims.arm_values import Values
from scaleproof.claims.claims_file import BaseOut
from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.launch_choice import of_different_seeds
from scaleproof.claims.launch_pool import Pool
from scaleproof.claims.metrics import Metric
from scaleproof.claims.noise_floor import KnownFloor, fits
from scaleproof.claims.notes import Note, SideName
from scaleproof.claims.verdict_rules import Estimate
from scaleproof.core.record_schema import Evidence


@dataclass(frozen=True, slots=True)
class Question:
    """A metric over selected cases: at a message size or against other cases where the metric needs that.

    `arms`: cases of which each is compared with the next; `along`: the field in which they differ. `floor`: the
    machine's noise floor for comparisons as the claim makes them. `counts_oversubscribed`: whether such launches count.
    `base_evidence`: the level of evidence of `against`; None: that of `select`.
    """

    metric: Metric
    select: Mapping[str, Any]
    against: Mapping[str, Any] | None = None
    nbytes: int | None = None
    arms: Sequence[Mapping[str, Any]] = ()
    along: str | None = None
    floor: KnownFloor = KnownFloor()
    counts_oversubscribed: bool = True
    base_evidence: Evidence | None = None


@dataclass(frozen=True, slots=True)
class Measurement:
    """The estimate, the launches behind it, the base in absolute terms, and the values of each side by its name."""

    estimate: Estimate
    runs: tuple[str, ...]
    base: BaseOut | None = None
    sides: tuple[tuple[SideName, Values], ...] = ()
    notes: tuple[Note, ...] = ()


def usable_launches(question: Question, pool: Pool, select: Mapping[str, Any], evidence: Evidence) -> list[Launch]:
    """Finished launches of the selected cases, oversubscribed ones only where they count. What follows from seeds alone
    counts once where merged folders repeat a campaign."""
    launches = pool.launches(select, evidence)
    if not question.metric.timing:
        launches = of_different_seeds(launches)
    return [launch for launch in launches if question.counts_oversubscribed or fits(launch.record)]
