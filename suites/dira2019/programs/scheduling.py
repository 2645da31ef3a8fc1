"""Trains a scheduler together with the controller of its plants, then runs it beside policies that learn nothing.

All have the same plants, noise and channels. Plants are drawn from the launch's seed, which every arm of a repetition
shares."""

from __future__ import annotations

import itertools
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np
import psutil
import torch
from suite_programs.action_space import LIBRARY, SCHEDULERS, memory_bytes, outputs
from suite_programs.networked_plants import Array, Setting, Weather, adapted, followed, gains
from suite_programs.policies import BASELINES
from suite_programs.q_learning import Budget, Learner
from suite_programs.q_networks import counted
from suite_programs.schedulers import BOOTSTRAPS, Flat, Iterative
from suite_programs.training_worlds import View

from scaleproof.core.context import RankContext
from scaleproof.core.recorder import now
from scaleproof.programs.common import mark
from scaleproof.spec.case import AnyCase, OwnCase
from scaleproof.spec.errors import SpecError
from scaleproof.spec.program_options import choice, real, whole

if TYPE_CHECKING:
    from suite_programs.library_dqn import LibraryLearner

    Learning = Learner | LibraryLearner

PACKAGES = ("stable_baselines3", "gymnasium", "farama_notifications")
"""What the library's scheduler needs beside the packages of all suites."""
SETTLE = 30
"""Steps after a start from states of 0 that no cost counts."""
DESIGNS, DESIGN_STEPS, DESIGN_WORLDS = 2, 100, 16
"""How often, and over how much, the controller is designed anew for the arrivals of a policy that does not learn."""
GIB = 1 << 30


def preload(case: OwnCase) -> tuple[str, ...]:
    """Modules that the ranks' parent imports. Only the library's scheduler needs the library, and torch's compiler,
    which torch's own Adam imports."""
    common = ("torch", "psutil")
    return (*common, "torch._dynamo", "stable_baselines3") if case.options["scheduler"] == LIBRARY else common


def obstacle(case: AnyCase) -> tuple[str, str] | None:
    """Packages that only the library's scheduler needs may lack, and a Q-network with an output per schedule may be
    larger than memory."""
    if not isinstance(case, OwnCase) or case.options.get("scheduler") not in (*SCHEDULERS, LIBRARY):
        return None
    uses = PACKAGES if case.options["scheduler"] == LIBRARY else ()
    if lacking := [name for name in uses if find_spec(name) is None]:
        return (
            f"the DQN of stable-baselines3 needs packages that are not installed: {', '.join(lacking)}",
            "type: python3 -m tools.setup extras dira2019",
        )
    return too_large(case)


def too_large(case: OwnCase) -> tuple[str, str] | None:
    """A Q-network that does not fit into the memory of the machine."""
    of = case.options
    plants, channels, hidden, batch = (whole(of, name, 1) for name in ("plants", "channels", "hidden", "batch"))
    count = outputs(str(case.options["scheduler"]), plants, channels)
    needed = memory_bytes(count, hidden, batch)
    available = psutil.virtual_memory().total
    if needed <= available:
        return None
    return (
        f"a flat Q-network for {channels} of {plants} plants has {count} outputs and takes {needed / GIB:.3g} GiB to "
        f"train; this machine has {available / GIB:.3g} GiB",
        "give fewer plants or channels, or schedule a plant after the other (scheduler: iterative)",
    )


def setting_of(case: OwnCase, channels: int | None = None) -> Setting:
    """Plants and channels of a case, or so many channels; SpecError where they make no sense."""
    of = case.options
    shares = {name: real(of, name) for name in ("slowest", "fastest", "stay", "good", "weight", "clip")}
    return Setting(whole(of, "plants", 1), whole(of, "channels", 1) if channels is None else channels, **shares)


def scheduler_of(case: OwnCase, setting: Setting, factors: Array) -> Iterative | Flat:
    """The scheduler that a case names."""
    name, hidden = choice(case.options, "scheduler", SCHEDULERS), whole(case.options, "hidden", 1)
    if name.startswith("flat"):
        return Flat(name, setting, factors, hidden)
    return Iterative(name, setting, factors, hidden, choice(case.options, "bootstrap", BOOTSTRAPS))


def budget_of(case: OwnCase) -> Budget:
    """What the training of a case may use."""
    rate, discount = real(case.options, "rate"), real(case.options, "discount")
    if rate <= 0 or not 0 <= discount < 1:
        raise SpecError(f"options: rate {rate:g} must be above 0, and discount {discount:g} at least 0 and below 1")
    counts = {name: whole(case.options, name, 1) for name in ("steps", "worlds", "batch")}
    return Budget(**counts, updates=whole(case.options, "updates"), rate=rate, discount=discount)


def run(context: RankContext) -> None:
    """See the module. Event `learning`: the mean cost of a plant in each step of the training; facts `costs`, by
    policy, and `work`."""
    case = context.case
    assert isinstance(case, OwnCase)
    torch.set_num_threads(case.threads_per_rank)
    torch.manual_seed(context.seed)
    setting = setting_of(case)
    factors = setting.factors(context.seed)
    weather = Weather.drawn(setting, np.random.default_rng([context.seed, 2]), *evaluated(case))
    mark(context, "start", 0)
    context.at(0, "baselines")
    costs = baseline_costs(setting, factors, weather, context.seed)
    context.at(1, "training")
    learner = trained(context, case, setting, factors)
    context.at(2, "evaluation")
    costs["learned"] = followed(setting, factors, learner.gain, learner.policy(), weather, SETTLE).cost
    mark(context, "end", 2)
    context.facts["plants"] = {"factors": factors.round(6).tolist(), "gains": learner.gain.round(6).tolist()}
    context.facts["costs"] = costs
    context.facts["work"] = work_of(learner, setting)
    context.check("costs.finite", bool(np.isfinite(list(costs.values())).all()), f"{costs}")


def evaluated(case: OwnCase) -> tuple[int, int]:
    """Steps and worlds of the evaluation."""
    return SETTLE + whole(case.options, "judged_steps", 1), whole(case.options, "judged_worlds", 1)


def baseline_costs(setting: Setting, factors: Array, weather: Weather, seed: int) -> dict[str, float]:
    """Cost of each policy that learns nothing, with a controller for its own arrivals, and as `POLICY_unaware` with one
    that takes all packets to arrive."""
    random, costs = np.random.default_rng([seed, 4]), dict[str, float]()
    designs = [Weather.drawn(setting, random, DESIGN_STEPS, DESIGN_WORLDS) for _ in range(DESIGNS)]
    unaware = gains(factors, 1.0, setting.weight)
    for name, make in BASELINES.items():
        policy = make(setting, factors, random)
        gain = adapted(setting, factors, policy, designs, SETTLE)
        costs[name] = followed(setting, factors, gain, policy, weather, SETTLE).cost
        costs[f"{name}_unaware"] = followed(setting, factors, unaware, policy, weather, SETTLE).cost
    return costs


def trained(context: RankContext, case: OwnCase, setting: Setting, factors: Array) -> Learning:
    """The scheduler after its training."""
    learner = learner_of(case, setting, factors, context.seed)
    start, steps = now(), itertools.count()

    def note(cost: float) -> None:
        step, moment = next(steps), now()
        context.recorder.add("learning", step, moment, moment, value=cost)
        context.at(step, "training")

    learner.train(note)
    context.recorder.add("training", 0, start, now())
    return learner


def learner_of(case: OwnCase, setting: Setting, factors: Array, seed: int) -> Learning:
    """The learner that a case names: ours, or that of the library."""
    view = View(bool(whole(case.options, "shuffled", 0, 1)), np.random.default_rng([seed, 5]))
    if case.options["scheduler"] == LIBRARY:
        from suite_programs.library_dqn import LibraryLearner  # its packages are an extra

        flat = Flat(LIBRARY, setting, factors, whole(case.options, "hidden", 1))
        return LibraryLearner(flat, setting, whole(case.options, "hidden", 1), budget_of(case), view, seed)
    return Learner(scheduler_of(case, setting, factors), setting, budget_of(case), view, seed)


def work_of(learner: Learning, setting: Setting) -> dict[str, int]:
    """What was counted: outputs of the network; its forward passes, values of Q and multiply-adds in one schedule;
    updates and rows through the network in training. `pairs`: of a plant and a channel."""
    return {
        "plants": setting.plants,
        "pairs": setting.plants * setting.channels,
        **schedule_work(learner.scheduler, setting),
        "updates": learner.updates,
        "rows": learner.rows,
    }


def schedule_work(scheduler: Iterative | Flat, setting: Setting) -> dict[str, int]:
    """What the network of a scheduler computes in one schedule, counted while it does."""
    shape = (1, setting.plants)
    with counted(scheduler.network) as found:
        seen = np.ones((*shape, setting.channels), bool)
        scheduler.choose(scheduler.network, np.zeros(shape), seen, np.zeros(1), np.random.default_rng(0))
    return {
        "outputs": scheduler.network.outputs,
        "passes_of_schedule": found.passes,
        "values_of_schedule": found.values,
        "multiply_adds_of_schedule": found.multiply_adds,
    }
