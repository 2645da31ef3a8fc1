"""The model of a rank that replays the times of its layers: as its node is slower than others, and as the case's law
draws them."""

from __future__ import annotations

from scaleproof.core.context import RankContext
from scaleproof.programs.replayed_reduction import reduce_as_slowly
from scaleproof.spec.case import TrainCase
from scaleproof.spec.relative_times import relative_times
from scaleproof.spec.straggler_law import straggler_law
from scaleproof.workloads.jitter_model import drawn_from
from scaleproof.workloads.networks import Network
from scaleproof.workloads.pace import Burn, Sleep
from scaleproof.workloads.profile import FILE, read
from scaleproof.workloads.replay import ReplayModel


def replayed_model(context: RankContext, case: TrainCase, network: Network) -> ReplayModel:
    """Of this rank; `network`: as it computes it."""
    times = relative_times(case)
    longer = case.dilation * (times[context.rank] if times else 1.0)
    profile, burns = read(context.folder / FILE), case.compute_options.burns
    if (rate := case.compute_options.reduces) is not None:
        reduce_as_slowly(rate, case.dilation * case.shrink, Burn() if burns else Sleep())
    return ReplayModel(network, profile, longer, case.shrink, burns=burns, factors=factors_of(context, case))


def factors_of(context: RankContext, case: TrainCase) -> list[float]:
    """Of this rank's compute in every step, as the simulator draws them; drawn before the first step."""
    law = drawn_from(straggler_law(context.jitter)) if context.jitter else None
    steps = range(case.warmup + case.steps if law else 0)
    return [float(law.factors(case.ranks, context.seed, step)[context.rank]) for step in steps if law]
