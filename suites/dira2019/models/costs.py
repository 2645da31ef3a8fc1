"""Costs of schedulers beside each other, and what their networks compute, from a launch's facts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pandas as pd

from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.made_up import MadeUp, MakeUp, Wanted, possible, with_facts
from scaleproof.claims.metrics import Metric
from scaleproof.core.record_schema import Record

CostOf = Callable[[Record, str], float | None]
BETTER, WORSE = 0.5, 2.0
"""Costs of made-up schedulers beside a round robin of 1."""


def _fact(record: Record, name: str) -> dict[str, Any]:
    fact: dict[str, Any] = record.ranks[0].facts.get(name, {}) if record.ranks else {}
    return fact


def cost(record: Record, policy: str) -> float | None:
    """Mean cost of a plant and step under a policy, with a controller for its own arrivals unless its name says
    otherwise."""
    found: float | None = _fact(record, "costs").get(policy)
    return found


def best_cost(record: Record, policy: str) -> float | None:
    """The same with the better controller: for its own arrivals, or for packets that all arrive."""
    found = [each for name in (policy, f"{policy}_unaware") if (each := cost(record, name)) is not None]
    return min(found, default=None)


def learned_cost(record: Record, samples: pd.DataFrame) -> float | None:
    """Mean cost of a plant and step under the learned scheduler (suite dira2019).

    learned_cost = mean over plants and steps of x^2 + weight u^2

    After training, on plants, noise and channels that all policies of the launch share. The first 30 steps do not
    count.
    """
    return cost(record, "learned")


def over(record: Record, samples: pd.DataFrame, ours: str, theirs: str, of: CostOf = best_cost) -> float | None:
    """Cost of one policy over that of another in the same launch."""
    first, second = of(record, ours), of(record, theirs)
    return first / second if first is not None and second else None


def gap_closed(record: Record, samples: pd.DataFrame) -> float | None:
    """Share of the distance from round robin to the iterative heuristic that the learned scheduler covers (suite
    dira2019).

    gap_closed = (cost of round robin - cost learned) / (cost of round robin - cost of the heuristic)

    In the same launch, and each with the better of its two controllers. 0: as round robin; 1: as the heuristic; above
    1: better than the heuristic. None where the heuristic is no better than round robin.
    """
    learned, worse, better = (best_cost(record, policy) for policy in ("learned", "round_robin", "heuristic"))
    if learned is None or worse is None or better is None or worse <= better:
        return None
    return (worse - learned) / (worse - better)


def learned_scales(block: Sequence[Launch], floor: float | None = None) -> float | None:
    """Whether the learned scheduler costs less than round robin at every size of a repetition (suite dira2019).

    learned_scales = 1 where cost learned < cost of round robin in each selected launch, else 0

    Round robin has the better of two controllers: for its own arrivals, or for packets that all arrive.
    Launches of a repetition differ in the number of plants and channels. None where one of them has no costs.
    """
    ratios = [over(launch.record, launch.samples, "learned", "round_robin") for launch in block]
    if not ratios or any(ratio is None for ratio in ratios):
        return None
    return float(all(ratio is not None and ratio < 1 for ratio in ratios))


def counted(record: Record, samples: pd.DataFrame, name: str, per: str | None = None) -> float | None:
    """Something that was counted, over something else."""
    work = _fact(record, "work")
    if name not in work or (per is not None and not work.get(per)):
        return None
    return float(work[name] / work[per]) if per else float(work[name])


def made_up_over(ours: str, theirs: str) -> MakeUp:
    """Launches in which one policy costs so many times another, which costs 1."""
    return with_facts(lambda value, _: {"costs": {ours: possible(value), theirs: 1.0}})


def made_up_gap(wanted: Wanted) -> MadeUp:
    """Launches that close this share of a gap of 1."""
    learned = possible(2 - wanted.known)
    return MadeUp(facts={"costs": {"round_robin": 2.0, "heuristic": 1.0, "learned": learned}})


def made_up_scales(wanted: Wanted) -> MadeUp:
    """Launches that are all better than round robin, or all worse."""
    learned = BETTER if wanted.known >= 1 else WORSE
    return MadeUp(facts={"costs": {"round_robin": 1.0, "learned": learned}})


def _ratio(ours: str, theirs: str, words: str) -> Metric:
    controllers = (
        "The learned scheduler has a controller for its own arrivals, any other policy the better of such a one and of "
        "one that takes all packets to arrive."
    )
    return _cost_ratio(ours, theirs, best_cost, words, controllers)


def _aware(policy: str) -> Metric:
    words = f"{policy} with gains for its own arrivals / its cost with gains that take all packets to arrive"
    return _cost_ratio(policy, f"{policy}_unaware", cost, words, "")


def _cost_ratio(ours: str, theirs: str, of: CostOf, words: str, controllers: str) -> Metric:
    return Metric(
        f"{ours}_over_{theirs}",
        "x",
        "lower",
        launch=partial(over, ours=ours, theirs=theirs, of=of),
        made_up=made_up_over(ours, theirs),
        doc=f"""
        {ours}_over_{theirs} = cost of {words}, in the same launch (suite dira2019)

        Cost: mean over plants and steps of x^2 + weight u^2. Both have the same plants, noise and channels.
        {controllers}
        """,
    )


def _count(name: str, unit: str, counts: str, per: str | None, doc: str) -> Metric:
    return Metric(
        name,
        unit,
        "lower",
        launch=partial(counted, name=counts, per=per),
        own_count=True,
        made_up=with_facts(lambda value, _: {"work": {counts: possible(value)} | ({per: 1.0} if per else {})}),
        doc=doc,
    )


METRICS = [
    Metric(
        "learned_cost",
        "1",
        "lower",
        launch=learned_cost,
        made_up=with_facts(lambda value, _: {"costs": {"learned": possible(value)}}),
    ),
    _ratio("learned", "round_robin", "the learned scheduler / cost of round robin"),
    _ratio("learned", "greedy", "the learned scheduler / cost of the greedy policy, which looks at no channel"),
    _ratio("learned", "heuristic", "the learned scheduler / cost of the iterative heuristic"),
    _ratio("learned", "random", "the learned scheduler / cost of random schedules"),
    _ratio("heuristic", "greedy", "the iterative heuristic / cost of the greedy policy, which looks at no channel"),
    _ratio("round_robin", "greedy", "round robin / cost of the greedy policy"),
    _aware("greedy"),
    _aware("round_robin"),
    Metric("gap_closed", "1", "higher", launch=gap_closed, made_up=made_up_gap, range=(-math.inf, math.inf)),
    Metric("learned_scales", "bool", "higher", block=learned_scales, made_up=made_up_scales),
    _count(
        "outputs_per_plant",
        "outputs",
        "outputs",
        "plants",
        """
        outputs_per_plant = outputs of the Q-network that was built / plants (suite dira2019)

        1 for an iterative scheduler, whatever the number of channels. A flat one has an output per schedule.
        """,
    ),
    _count(
        "values_per_pair",
        "values",
        "values_of_schedule",
        "pairs",
        """
        values_per_pair = values of Q that the network gave for one schedule / (plants * channels) (suite dira2019)

        Counted in a schedule. 1 for an iterative scheduler: an output per plant, once for each channel.
        """,
    ),
    _count(
        "network_updates",
        "updates",
        "updates",
        None,
        """
        network_updates = steps of the optimiser in a training (suite dira2019)

        Each is over one batch of the same size in all arms.
        """,
    ),
    _count(
        "schedule_multiply_adds",
        "multiply-adds",
        "multiply_adds_of_schedule",
        None,
        """
        schedule_multiply_adds = multiply-adds of the linear layers in one schedule (suite dira2019)

        Counted in a schedule. An iterative scheduler needs a pass for each channel, a flat one a single pass with an
        output per schedule.
        """,
    ),
]
