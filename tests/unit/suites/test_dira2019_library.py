"""DQN of stable-baselines3 as a scheduler of dira2019: the worlds, views, actions and rewards of our own learner."""

from __future__ import annotations

import importlib
import importlib.util
import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from scaleproof.core.context import RankContext
from scaleproof.programs.own import load_entry
from scaleproof.rank.unsupervised_ranks import run_ranks
from tests.unit.suites.test_dira2019_programs import PROGRAMS, case, of, trained

__all__ = ["of"]
LIBRARY: dict[str, Any] = {"scheduler": "flat_library", "plants": 5, "channels": 2}


@pytest.fixture
def library(of: Any) -> Any:
    """The module of the library's learner."""
    pytest.importorskip("stable_baselines3", reason="extra dira2019 (type: python3 -m tools.setup extras dira2019)")
    return importlib.import_module("suite_programs.library_dqn")


def learner(of: Any, seed: int = 1, **options: Any) -> Any:
    of_case = case(**LIBRARY | options)
    here = of.scheduling.setting_of(of_case)
    return of.scheduling.learner_of(of_case, here, here.factors(seed), seed)


def cost(of: Any, taught: Any) -> float:
    here, factors = taught.worlds.setting, taught.scheduler.factors
    weather = of.networked_plants.Weather.drawn(here, np.random.default_rng(5), 80, 60)
    return float(of.networked_plants.followed(here, factors, taught.gain, taught.policy(), weather, 30).cost)


def test_it_trains_with_its_budget_and_returns_a_policy(of: Any, library: Any) -> None:
    taught = learner(of, steps=20)
    costs = trained(taught)
    assert len(costs) == 20 and np.isfinite(costs).all() and min(costs) > 0
    assert taught.updates == 20 * 2 and taught.model.num_timesteps == 20 * 4
    in_updates = 2 * 8 * taught.updates
    assert in_updates <= taught.rows <= in_updates + 20 * 4 and taught.rows % 4 == 0, "random steps ask no network"
    x, seen = np.random.default_rng(1).standard_normal((3, 5)), np.ones((3, 5, 2), bool)
    channel = taught.policy()(0, x, seen)
    assert all(sorted(each[each >= 0]) == [0, 1] for each in channel)
    rows = taught.rows
    taught.policy()(0, x, seen)
    assert taught.rows == rows, "only the training is counted"


def test_one_seed_has_one_cost(of: Any, library: Any) -> None:
    """One after the other: the library seeds the generators of the process."""
    found = []
    for seed in (3, 3, 4):
        taught = learner(of, seed)
        found.append((trained(taught), cost(of, taught)))
    assert found[0] == found[1] and found[0][0] != found[2][0] and found[0][1] != found[2][1]


def test_its_worlds_step_as_those_of_our_learner(of: Any, library: Any) -> None:
    """Both get the same schedules and draw the same random numbers."""
    options: dict[str, Any] = {"steps": 60, "updates": 0, "discount": 0.75}
    ours = of.scheduling.learner_of(case(**LIBRARY | options | {"scheduler": "flat"}), *here(of), 1)
    schedules = np.random.default_rng(9).integers(10, size=(60, 4))
    script = iter(schedules)

    def choose(network: Any, x: np.ndarray, seen: np.ndarray, curious: Any, random: Any) -> Any:
        action = next(script)
        return ours.scheduler.given(action, x, seen), action

    ours.scheduler.choose = choose
    costs, kept, theirs = trained(ours), ours.memory, learner(of, **options)
    view, cuts = theirs.env.reset(), 0
    of_whole = of.q_networks.of_whole
    for step, actions in enumerate(schedules):
        assert view == pytest.approx(of_whole(ours.scheduler.factors, kept.x[step, 0], kept.seen[step, 0]), abs=1e-6)
        view, reward, cut, notes = theirs.env.step(actions)
        assert theirs.env.cost == costs[step]
        assert reward == pytest.approx(0.25 * kept.reward[step], rel=1e-6), "rewards are those that ours learns from"
        then = of_whole(ours.scheduler.factors, kept.x[step, 1], kept.seen[step, 1])
        reached = [note.get("terminal_observation", view[world]) for world, note in enumerate(notes)]
        assert np.stack(reached) == pytest.approx(then, abs=1e-6), "moves of plants are no part of a step"
        cuts += cut.sum()
    assert 5 < cuts < 60 and (theirs.gain == ours.gain).all()


def here(of: Any) -> tuple[Any, np.ndarray]:
    """Setting and factors of the plants."""
    setting = of.scheduling.setting_of(case(**LIBRARY))
    return setting, setting.factors(1)


def test_what_the_library_asks_of_its_worlds_is_of_all_of_them(of: Any, library: Any) -> None:
    env = learner(of).env
    env.set_attr("cost", 2.5)
    assert env.get_attr("cost") == [2.5] * env.num_envs
    count = itertools.count(1)
    env.counted = lambda more: next(count) + more
    assert env.env_method("counted", more=3) == [4] * env.num_envs
    assert next(count) == 2, "the worlds are one object"


def test_a_moved_plant_ends_nothing_that_is_learned(of: Any, library: Any) -> None:
    taught = learner(of, steps=60, updates=0)
    trained(taught)
    memory = taught.model.replay_buffer
    assert memory.dones[:60].any() and (memory.dones == memory.timeouts).all()
    assert not memory.sample(200).dones.any(), "the value of the next state counts everywhere"
    assert memory.buffer_size == taught.budget.remembered


def test_it_explores_as_ours_and_its_target_follows_as_fast(of: Any, library: Any) -> None:
    taught, found = learner(of, steps=40, updates=8), []
    taught.train(lambda _: found.append(taught.model.exploration_rate))
    assert found == pytest.approx([max(0.05, 1 - 2 * step / 40) for step in range(40)])
    assert 1 - taught.model.tau == pytest.approx(0.98**8)
    assert max(1, taught.model.target_update_interval // taught.worlds.count) == 1, "in each time step"


def test_a_library_learns_to_serve_the_plant_that_needs_it(of: Any, library: Any) -> None:
    options: dict[str, Any] = {"plants": 4, "channels": 1, "good": 1.0, "stay": 1.0, "fastest": 1.1, "hidden": 16}
    taught = learner(of, **options, steps=60, worlds=16, updates=8, batch=64, rate=0.003)
    trained(taught)
    setting, factors = taught.worlds.setting, taught.scheduler.factors
    weather = of.networked_plants.Weather.drawn(setting, np.random.default_rng(5), 80, 60)
    turns = of.policies.round_robin(setting, factors, np.random.default_rng(1))
    theirs = of.networked_plants.followed(setting, factors, taught.gain, turns, weather, 30).cost
    assert taught.updates == 480 and cost(of, taught) < 0.9 * theirs


def test_the_work_of_its_network_is_counted(of: Any, library: Any) -> None:
    taught = learner(of, plants=8, channels=3)
    assert of.scheduling.work_of(taught, taught.worlds.setting) == {
        "plants": 8,
        "pairs": 24,
        "outputs": 56,
        "passes_of_schedule": 1,
        "values_of_schedule": 56,
        "multiply_adds_of_schedule": 8 * 4 * 8 + 8 * 8 + 8 * 56,
        "updates": 0,
        "rows": 0,
    }


def test_a_launch_leaves_no_folder_of_the_library(of: Any, library: Any, tmp_path: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("SB3_LOGDIR", str(tmp_path / "logs"))

    def body(context: RankContext) -> None:
        load_entry(PROGRAMS, "scheduling").run(context)
        assert context.facts["work"]["updates"] == 12 and context.facts["work"]["outputs"] == 10
        assert [check["passed"] for check in context.checks] == [True]

    assert run_ranks(case(**LIBRARY), body) == [""]
    assert not (tmp_path / "logs").exists()


@pytest.mark.parametrize("lacking", [("stable_baselines3",), ("gymnasium", "farama_notifications")])
def test_without_its_packages_only_the_library_is_not_run(of: Any, monkeypatch: Any, lacking: tuple[str, ...]) -> None:
    monkeypatch.setattr(of.scheduling, "find_spec", lambda name: None if name in lacking else SimpleNamespace())
    reason, advice = of.scheduling.obstacle(case(**LIBRARY))
    assert reason.endswith(f"packages that are not installed: {', '.join(lacking)}")
    assert advice == "type: python3 -m tools.setup extras dira2019"
    assert of.scheduling.obstacle(case(scheduler="flat")) is None and of.scheduling.obstacle(case()) is None


def test_a_library_network_larger_than_memory_is_an_obstacle(of: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(of.scheduling, "find_spec", lambda name: SimpleNamespace())
    assert of.scheduling.obstacle(case(**LIBRARY)) is None
    reason, _ = of.scheduling.obstacle(case(**LIBRARY | {"plants": 50, "channels": 20}))
    assert "GiB to train; this machine has" in reason
