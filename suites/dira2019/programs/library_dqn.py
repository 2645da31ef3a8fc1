"""DQN of stable-baselines3 (Raffin et al. 2021) as the flat scheduler: a well-kept library on the worlds, the view, the
actions and the rewards of ours. What it does in its own way is left as it is: the README lists it. Only launches that
use it import this module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium import spaces
from stable_baselines3 import DQN
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.vec_env import VecEnv
from suite_programs.networked_plants import Array, Policy, Setting
from suite_programs.q_learning import TARGET, Budget
from suite_programs.q_networks import Built, of_whole
from suite_programs.schedulers import Flat
from suite_programs.training_worlds import View, Worlds
from torch import Tensor, nn


class LibraryWorlds(VecEnv):
    """All worlds as one environment of the library. An action is the number of a schedule. Where a plant was moved
    between two steps, an episode is cut there: the library then learns from the state before the move, and goes on
    from the one after it."""

    def __init__(self, scheduler: Flat, worlds: Worlds, discount: float) -> None:
        self.scheduler, self.worlds, self.scale, self.cost = scheduler, worlds, 1 - discount, 0.0
        setting = worlds.setting
        view = spaces.Box(0.0, np.inf, (setting.plants * (1 + setting.channels),), np.float32)
        super().__init__(worlds.count, view, spaces.Discrete(len(scheduler.schedules)))

    def reset(self) -> Array:
        """The first views (worlds, inputs)."""
        self.shown = self.worlds.start()
        return of_whole(self.worlds.factors, *self.shown)

    def step_async(self, actions: Array) -> None:
        """The schedule of each world."""
        self.actions = actions

    def step_wait(self) -> tuple[Array, Array, Array, list[dict[str, Any]]]:
        """Views, rewards that are scaled as in `Learner.wanted`, cut episodes, and the views before a cut."""
        factors = self.worlds.factors
        stepped = self.worlds.step(self.scheduler.given(self.actions, *self.shown))
        self.shown, self.cost = stepped.shown, float(stepped.cost.mean())
        then = of_whole(factors, *stepped.then)
        notes: list[dict[str, Any]] = [
            {"terminal_observation": view, "TimeLimit.truncated": True} if cut else {}
            for view, cut in zip(then, stepped.pushed, strict=True)
        ]
        reward = (-self.scale * stepped.cost).astype(np.float32)
        return of_whole(factors, *self.shown), reward, stepped.pushed, notes

    def close(self) -> None:
        """Holds nothing."""

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Of each world the same."""
        return [None if attr_name == "render_mode" else getattr(self, attr_name)] * self.num_envs

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """For all worlds at once, since they are one object."""
        setattr(self, attr_name, value)

    def env_method(self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any) -> list[Any]:
        """Called once, for all worlds; of each world the same."""
        return [getattr(self, method_name)(*method_args, **method_kwargs)] * self.num_envs

    def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> list[bool]:
        """No world is."""
        return [False] * self.num_envs


def model_of(env: LibraryWorlds, hidden: int, budget: Budget, seed: int) -> DQN:
    """The library's DQN; `seed` is also that of the process's generators. Its target network follows once in a time
    step of all worlds: by as much as ours does in all updates of one."""
    worlds, least = budget.worlds, budget.least_curious
    model = DQN(
        "MlpPolicy",
        env,
        learning_rate=budget.rate,
        buffer_size=budget.remembered * worlds,
        learning_starts=0,
        batch_size=budget.batch,
        tau=1 - (1 - TARGET) ** budget.updates,
        target_update_interval=worlds,
        gamma=budget.discount,
        train_freq=1,
        gradient_steps=budget.updates,
        exploration_fraction=(1 - least) / 2,  # as 1 - 2 step / steps, where that is larger than the least
        exploration_final_eps=least,
        policy_kwargs={"net_arch": [hidden, hidden]},
        seed=seed,
        device="cpu",
    )
    model.exploration_rate = 1.0  # the library sets it after the first step
    model.set_logger(Logger(None, []))  # its own would make a folder
    return model


class LibraryLearner:
    """The library's DQN with the budget of `Learner`. `updates`: steps of its optimiser; `rows`: rows that went through
    a network; both are counted while it trains."""

    def __init__(self, scheduler: Flat, setting: Setting, hidden: int, budget: Budget, view: View, seed: int) -> None:
        self.scheduler, self.budget, self.view, self.updates, self.rows = scheduler, budget, view, 0, 0
        self.worlds = Worlds(setting, scheduler.factors, budget.worlds, view, np.random.default_rng([seed, 3]))
        self.env = LibraryWorlds(scheduler, self.worlds, budget.discount)
        self.model = model_of(self.env, hidden, budget, int(np.random.default_rng([seed, 6]).integers(2**31)))
        self.scheduler.network = Built(self.model.q_net, len(scheduler.schedules))

    @property
    def gain(self) -> Array:
        """The controller's gain of each plant."""
        return self.worlds.gain

    def train(self, note: Callable[[float], None]) -> None:
        """Uses the budget. Notes the mean cost of a plant in each time step."""

        def stepped(found: dict[str, Any], names: dict[str, Any]) -> bool:
            note(self.env.cost)
            return True

        networks = (self.model.q_net, self.model.q_net_target)
        hooks = [network.register_forward_hook(self._passed) for network in networks]
        hooks.append(self.model.policy.optimizer.register_step_post_hook(self._updated))
        try:
            self.model.learn(self.budget.steps * self.budget.worlds, callback=stepped)
        finally:
            for hook in hooks:
                hook.remove()

    def _passed(self, network: nn.Module, given: Any, out: Tensor) -> None:
        self.rows += len(out)

    def _updated(self, optimiser: Any, given: Any, options: Any) -> None:
        self.updates += 1

    def policy(self) -> Policy:
        """What it has learned, without random choices."""

        def policy(step: int, x: Array, seen: Array) -> Array:
            shown = self.view.of(x, seen)
            action, _ = self.model.predict(of_whole(self.scheduler.factors, *shown), deterministic=True)
            return self.scheduler.given(action, *shown)

        return policy
