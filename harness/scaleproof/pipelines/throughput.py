"""What an iteration of a pipeline takes where gradients are added up, too: the list schedule of its passes, and the
all-reduce of each stage among its replicas, which begins when all of them are ready for it (GradientSync).

As in chimera2021 (section 3.4, Eq. 1): a message of L bytes takes alpha + beta L, an all-reduce among r ranks
2 log2(r) alpha + 2 (r - 1) beta L / r (Rabenseifner). A worker has one all-reduce under way at a time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import log2

from scaleproof.pipelines.schedule import Schedule
from scaleproof.pipelines.schemes import schedule_of
from scaleproof.pipelines.timing import GradientSync, OfStages, PassTimes, Timeline, begun_early, timeline

AFTER_EACH = "pipedream"


@dataclass(frozen=True, slots=True)
class Line:
    """What messages cost: alpha in s, beta in s a byte."""

    alpha: float
    beta: float

    def message(self, nbytes: float) -> float:
        """Between two ranks, s."""
        return self.alpha + self.beta * nbytes

    def all_reduce(self, nbytes: float, ranks: int) -> float:
        """Among so many ranks, s."""
        if ranks < 2:
            return 0.0
        return 2 * log2(ranks) * self.alpha + 2 * (ranks - 1) * self.beta * nbytes / ranks


@dataclass(frozen=True, slots=True)
class Setting:
    """A pipeline and what it runs on. `groups`: W, replicas of the whole; `forward`, `backward`: s of a stage's passes
    of a micro-batch; `activations`: bytes between two stages; `gradients`: bytes of each stage."""

    scheme: str
    stages: int
    micro_batches: int
    groups: int
    forward: OfStages
    backward: OfStages
    activations: float
    gradients: tuple[float, ...]
    line: Line
    recompute: bool = False
    pairs: int = 1
    gradient_sync: GradientSync = "eager"


def iteration_s(setting: Setting) -> float:
    """Of one iteration among many, s. Schemes without a flush add up gradients between two updates, one stage beside
    another, with nothing that hides it."""
    schedule = schedule_of(setting.scheme, setting.stages, setting.micro_batches, setting.pairs)
    message = setting.line.message(setting.activations)
    times = PassTimes(setting.forward, setting.backward, message, setting.recompute)
    if schedule.flush:
        line = timeline(schedule, times)
        return max([line.makespan, *ends_of_sums(setting, schedule, line)])
    updates = setting.micro_batches if setting.scheme == AFTER_EACH else 1
    longest = max(setting.line.all_reduce(nbytes, setting.groups) for nbytes in setting.gradients)
    return busiest_s(schedule, times) + updates * longest


def busiest_s(schedule: Schedule, times: PassTimes) -> float:
    """All passes of the worker that computes longest: an iteration without gaps."""
    return max(sum(end - start for start, end in spans) for spans in timeline(schedule, times).spans)


def ends_of_sums(setting: Setting, schedule: Schedule, line: Timeline) -> list[float]:
    """When each stage's all-reduce has ended. All groups are alike, so those of one stand for all. Passes are not
    slower while gradients are added up."""
    ready: dict[int, float] = {}
    workers: dict[int, set[int]] = {}
    for worker, (order, spans) in enumerate(zip(schedule.orders, line.spans, strict=True)):
        early = begun_early(setting.gradient_sync, schedule, worker)
        for each, (_, end) in zip(order, spans, strict=True):
            if each.direction == "backward":
                moment = end if each.pipeline in early else spans[-1][1]
                ready[each.stage] = max(ready.get(each.stage, 0.0), moment)
            workers.setdefault(each.stage, set()).add(worker)
    free, ends = [0.0] * len(schedule.orders), list[float]()
    for stage in sorted(ready, key=lambda each: (ready[each], each)):
        members = workers[stage]
        begin = max([ready[stage], *(free[worker] for worker in members)])
        end = begin + setting.line.all_reduce(setting.gradients[stage], setting.groups * len(members))
        ends.append(end)
        for worker in members:
            free[worker] = end
    return ends


@lru_cache
def calibrated_beta(setting: Setting, wanted_s: float) -> float:
    """The beta, s a byte, with which an iteration takes so long. ValueError: it takes longer without any message."""

    def taken(beta: float) -> float:
        return iteration_s(replace(setting, line=replace(setting.line, beta=beta)))

    low, high = 0.0, 1e-12
    if taken(low) > wanted_s:
        raise ValueError(f"the passes alone take {taken(low):.3g} s, more than {wanted_s:.3g} s")
    while taken(high) < wanted_s:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if taken(middle) < wanted_s else (low, middle)
    return (low + high) / 2
