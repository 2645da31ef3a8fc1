"""Plants, channels, controllers, policies and learned schedulers of dira2019."""

from __future__ import annotations

import dataclasses
import importlib
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import solve_discrete_are

from scaleproof.core.context import RankContext
from scaleproof.programs.own import load_entry
from scaleproof.rank.unsupervised_ranks import run_ranks
from scaleproof.spec.errors import SpecError
from tests.short_form import case_from

PROGRAMS = Path(__file__).resolve().parents[3] / "suites" / "dira2019" / "programs"
NAMES = (
    "action_space",
    "networked_plants",
    "policies",
    "q_networks",
    "schedulers",
    "training_worlds",
    "q_learning",
    "scheduling",
    "decisions",
)
OPTIONS: dict[str, Any] = {
    "scheduler": "shared",
    "plants": 5,
    "channels": 2,
    "slowest": 1.0,
    "fastest": 1.25,
    "stay": 0.9,
    "good": 0.8,
    "weight": 1.0,
    "clip": 1000,
    "bootstrap": "sub_step",
    "shuffled": 0,
    "hidden": 8,
    "steps": 6,
    "worlds": 4,
    "updates": 2,
    "batch": 8,
    "rate": 0.001,
    "discount": 0.9,
    "judged_steps": 5,
    "judged_worlds": 4,
}


@pytest.fixture(scope="module")
def of() -> Iterator[Any]:
    """The suite's modules, as its program imports them."""
    before = {name: module for name, module in sys.modules.items() if name.startswith("suite_programs")}
    for name in before:
        del sys.modules[name]
    load_entry(PROGRAMS, "networked_plants")
    yield SimpleNamespace(**{name: importlib.import_module(f"suite_programs.{name}") for name in NAMES})
    for name in [name for name in sys.modules if name.startswith("suite_programs")]:
        del sys.modules[name]
    sys.modules.update(before)


def case(entry: str = "scheduling", **options: Any) -> Any:
    base = {"program": "own", "entry": entry, "suite": "dira2019", "experiment": "e", "arm": "a", "ranks": 1}
    return case_from({**base, "iterations": 2, "warmup": 1, "options": OPTIONS | options})


def setting(of: Any, **options: Any) -> Any:
    return of.scheduling.setting_of(case(**options))


def scheduler_of(of: Any, name: str, here: Any, factors: np.ndarray, hidden: int) -> Any:
    return of.scheduling.scheduler_of(case(scheduler=name, hidden=hidden), here, factors)


@settings(max_examples=60, deadline=None)
@given(a=st.floats(0.5, 1.5), weight=st.floats(0.05, 5))
def test_without_losses_the_gains_are_those_of_the_riccati_equation_of_scipy(of: Any, a: float, weight: float) -> None:
    (gain,) = of.networked_plants.gains(np.array([a]), 1.0, weight)
    (cost,) = solve_discrete_are(np.array([[a]]), np.eye(1), np.eye(1), np.array([[weight]]))[0]
    assert gain == pytest.approx(a * cost / (weight + cost), rel=1e-7)


@settings(max_examples=40, deadline=None)
@given(a=st.floats(0.5, 1.5), weight=st.floats(0.05, 5), often=st.floats(0.05, 0.95))
def test_the_rarer_packets_arrive_the_more_a_gain_does_with_each(
    of: Any, a: float, weight: float, often: float
) -> None:
    factors = np.array([a])
    rare, always = (of.networked_plants.gains(factors, share, weight)[0] for share in (often, 1.0))
    assert 0 < always <= rare <= a


def test_designed_gains_cost_less_than_others_where_losses_are_independent(of: Any) -> None:
    here = setting(of, plants=1, channels=1, good=0.7, stay=0.7, slowest=1.1, fastest=1.1)
    factors, weather = here.factors(1), of.networked_plants.Weather.drawn(here, np.random.default_rng(2), 400, 400)
    policy = of.policies.greedy(here, factors, np.random.default_rng(3))
    gain = of.networked_plants.gains(factors, 0.7, here.weight)
    costs = [of.networked_plants.followed(here, factors, f * gain, policy, weather, 30).cost for f in (0.85, 1, 1.1)]
    assert costs[1] < min(costs[0], costs[2])


@pytest.mark.parametrize(("good", "stay"), [(0.8, 0.9), (0.8, 0.8), (0.5, 0.95), (1.0, 1.0)])
def test_channels_are_good_for_their_share_and_keep_their_state(of: Any, good: float, stay: float) -> None:
    here = setting(of, good=good, stay=stay)
    drawn = of.networked_plants.Weather.drawn(here, np.random.default_rng(1), 200, 60).good
    assert drawn.mean() == pytest.approx(good, abs=0.01)
    assert drawn[1:][drawn[:-1]].mean() == pytest.approx(stay, abs=0.01)
    if good < 1:
        assert drawn[1:][~drawn[:-1]].mean() == pytest.approx(here.recovery, abs=0.02)
    if stay == good:
        assert here.recovery == pytest.approx(good), "no memory"


@settings(max_examples=20, deadline=None)
@given(good=st.floats(0.3, 0.95), kept=st.floats(0.0, 0.9), seed=st.integers(0, 1000))
def test_channels_of_any_memory_have_their_frequencies(of: Any, good: float, kept: float, seed: int) -> None:
    """`kept`: the correlation of a channel with itself a step later."""
    stay = good + kept * (1 - good)
    here = setting(of, good=good, stay=stay)
    drawn = of.networked_plants.Weather.drawn(here, np.random.default_rng(seed), 400, 40).good
    assert here.recovery == pytest.approx(good * (1 - kept))
    assert drawn.mean() == pytest.approx(good, abs=0.03)
    assert drawn[1:][drawn[:-1]].mean() == pytest.approx(stay, abs=0.02)
    assert drawn[1:][~drawn[:-1]].mean() == pytest.approx(here.recovery, abs=0.03)


def test_a_packet_arrives_by_the_channel_as_it_is_then(of: Any) -> None:
    good = np.array([[[True, False], [True, False], [False, True]]])
    assert of.networked_plants.arrivals_of(np.array([[0, 1, -1]]), good).tolist() == [[True, False, False]]
    here = setting(of, clip=2)
    after, u = of.networked_plants.moved(
        here, np.array([1.2, 1.2]), np.array([1.0, 1.0]), np.array([[1.0, 5.0]]), np.array([[True, False]]), 0.1
    )
    assert after.tolist() == [[pytest.approx(0.3), 2.0]] and u.tolist() == [[1.0, 0.0]]


def test_plants_are_drawn_anew_by_seed_and_alike_for_all_arms(of: Any) -> None:
    shared, flat = setting(of), setting(of, scheduler="flat")
    assert (shared.factors(7) == flat.factors(7)).all() and (shared.factors(7) != shared.factors(8)).all()


SIZES = st.integers(1, 6).flatmap(lambda plants: st.tuples(st.just(plants), st.integers(1, plants)))


@settings(max_examples=25, deadline=None)
@given(size=SIZES, seed=st.integers(0, 1000))
def test_every_channel_goes_to_one_plant_and_no_plant_has_two(of: Any, size: tuple[int, int], seed: int) -> None:
    plants, channels = size
    here, random = setting(of, plants=plants, channels=channels), np.random.default_rng(seed)
    x, seen = random.standard_normal((3, plants)), random.random((3, plants, channels)) < 0.5
    factors = here.factors(seed)
    given = [make(here, factors, random)(seed, x, seen) for make in of.policies.BASELINES.values()]
    for name in of.action_space.SCHEDULERS:
        scheduler = scheduler_of(of, name, here, factors, 4)
        for curious in (0.0, 1.0):
            given.append(scheduler.choose(scheduler.network, x, seen, np.full(3, curious), random)[0])
    for channel in given:
        assert channel.shape == x.shape
        assert all(sorted(each[each >= 0]) == list(range(channels)) for each in channel)


def test_round_robin_serves_all_alike_and_greedy_the_most_urgent(of: Any) -> None:
    here, random = setting(of, plants=8, channels=3), np.random.default_rng(1)
    factors = np.array([1.25, *[1.0] * 7])
    turns = of.policies.round_robin(here, factors, random)
    served = sum((turns(step, np.zeros((1, 8)), np.ones((1, 8, 3), bool)) >= 0).astype(int) for step in range(8))
    assert served.tolist() == [[3] * 8]
    x = np.array([[-2.0, 2.1, 0.1, 0, 0, 3, 0, 0]])
    urgent = of.policies.greedy(here, factors, random)(0, x, np.ones((1, 8, 3), bool))
    assert urgent.tolist() == [[1, 2, -1, -1, -1, 0, -1, -1]], "1.25 * 2 is more than 2.1"


def test_the_heuristic_takes_the_first_free_channel_that_was_good(of: Any) -> None:
    here = setting(of, plants=3, channels=2)
    seen = np.array([[[False, True], [False, True], [True, True]]])
    policy = of.policies.heuristic(here, np.ones(3), np.random.default_rng(1))
    assert policy(0, np.array([[3.0, 2.0, 1.0]]), seen).tolist() == [[1, 0, -1]], "the second has no good one left"


def test_an_iterative_scheduler_sees_the_channel_that_it_gives_away(of: Any) -> None:
    seen = np.array([[[True, False, True], [False, True, False]]])
    view = of.q_networks.of_plants(
        np.array([1.0, 1.25]), np.array([[2.0, 0.0]]), seen, np.array([[0, -1]]), np.array([1])
    )
    assert view[0] == pytest.approx(
        np.array([[math.log(5) / 2, 0, 0, 1, 1, 1 / 3], [0, 1, 1, 0, 0, 1 / 3]], np.float32), abs=1e-6
    )
    assert not of.q_networks.of_plants(np.ones(2), np.zeros((1, 2)), seen, np.array([[1, -1]]), np.array([1]))[
        0, :, 4
    ].any()


@pytest.mark.parametrize(
    ("name", "count", "passes", "multiply_adds"),
    [
        ("shared", 8, 3, 3 * (8 * (6 * 8 + 8 * 8 + 8) + 2 * 8 * 8 + 8)),
        ("iterative", 8, 3, 3 * (8 * 6 * 8 + 8 * 8 + 8 + 8 * 8)),
        ("flat", 56, 1, 8 * 4 * 8 + 8 * 8 + 8 + 8 * 56),
        ("flat_ordered", 336, 1, 8 * 4 * 8 + 8 * 8 + 8 + 8 * 336),
    ],
)
def test_outputs_and_work_are_counted_in_the_network_that_was_built(
    of: Any, name: str, count: int, passes: int, multiply_adds: int
) -> None:
    here = setting(of, plants=8, channels=3)
    scheduler = scheduler_of(of, name, here, here.factors(1), 8)
    found = of.scheduling.schedule_work(scheduler, here)
    assert found == {
        "outputs": count,
        "passes_of_schedule": passes,
        "values_of_schedule": count * passes,
        "multiply_adds_of_schedule": multiply_adds,
    }
    assert of.action_space.outputs(name, 8, 3) == count
    assert not scheduler.network._forward_hooks, "nothing is counted afterwards"


def test_one_network_scores_plants_alike_wherever_they_stand(of: Any) -> None:
    network, view = of.q_networks.Shared(8, 5), np.random.default_rng(1).random((2, 5, 6), np.float32)
    order = np.array([3, 1, 4, 0, 2])
    found = of.q_networks.values(network, view)
    assert of.q_networks.values(network, view[:, order]) == pytest.approx(found[:, order], abs=1e-6)


def learner(of: Any, shuffled: bool = False, **options: Any) -> Any:
    torch.manual_seed(1)
    of_case = case(**options)
    here = of.scheduling.setting_of(of_case)
    scheduler = of.scheduling.scheduler_of(of_case, here, here.factors(1))
    view = of.training_worlds.View(shuffled, np.random.default_rng(1))
    return of.q_learning.Learner(scheduler, here, of.scheduling.budget_of(of_case), view, 1)


def trained(taught: Any) -> list[float]:
    """The mean cost of a plant in each time step of the training."""
    costs = list[float]()
    taught.train(costs.append)
    return costs


def test_what_is_remembered_is_what_happened(of: Any) -> None:
    taught = learner(of, updates=0, steps=9)
    assert len(trained(taught)) == 9 and taught.updates == 0
    drawn, setting = taught.memory.drawn(64, np.random.default_rng(1)), taught.worlds.setting
    arrived = of.networked_plants.arrivals_of(drawn.channel, drawn.next_seen)
    gain = of.networked_plants.gains(taught.scheduler.factors, np.full(5, 0.8 * 2 / 5), 1.0)
    u = np.where(arrived, gain * drawn.x, 0)
    noise = drawn.next_x - (taught.scheduler.factors * drawn.x - u)
    inside = np.abs(drawn.next_x) < setting.clip
    assert abs(noise[inside].mean()) < 0.4 and 0.7 < noise[inside].std() < 1.3
    paid = np.mean(drawn.next_x**2 + u**2, axis=1)
    assert -drawn.reward == pytest.approx(paid, rel=1e-5)


class Known(torch.nn.Module):
    """Q of a plant: `slope` times how urgent it is, plus how far the schedule is."""

    def __init__(self, slope: float) -> None:
        super().__init__()
        self.slope = slope

    def forward(self, view: torch.Tensor) -> torch.Tensor:
        return self.slope * view[..., 0] + view[..., 5]


def remembered(of: Any, channel: list[int]) -> Any:
    """One time step of 3 plants and 2 channels, with a reward of -8: |a x| of 4, 2 and 1 before it, of 1, 2 and 3 after
    it."""
    seen = np.ones((1, 3, 2), bool)
    x, then = np.array([[4.0, 2.0, 1.0]]), np.array([[1.0, 2.0, 3.0]])
    reward = np.array([-8.0], np.float32)
    return of.schedulers.Batch(x, seen, np.array([channel]), np.array([0]), reward, then, seen)


def urgency(size: float) -> float:
    return math.log1p(size**2) / 2


@pytest.mark.parametrize(("slope", "place", "chosen"), [(1.0, 0, 0), (1.0, 1, 2), (-1.0, 0, 0), (-1.0, 1, 2)])
def test_the_target_of_a_sub_step_is_the_value_of_the_next_one(of: Any, slope: float, place: int, chosen: int) -> None:
    """Plant 0 gets channel 0, plant 2 channel 1. The network chooses the next plant, the target network values it."""
    taught = learner(of, plants=3, channels=2, slowest=1.0, fastest=1.0)
    taught.scheduler.network, taught.target = Known(slope), Known(10.0)
    batch, always = remembered(of, [0, -1, 1]), SimpleNamespace(integers=lambda *_, **__: np.array([place]))
    lesson = taught.scheduler.lesson(batch, always)
    assert lesson.action.tolist() == [chosen] and lesson.ends.tolist() == [place == 1]
    (found,) = taught.wanted(lesson, batch.reward)
    if place == 0:  # plant 0 has a channel: of the others 1 is the more urgent; half of the schedule is done
        assert lesson.taken.tolist() == [[True, False, False]]
        assert found == pytest.approx(10 * urgency(2 if slope > 0 else 1) + 1 / 2, rel=1e-6)
    else:
        assert not lesson.taken.any()
        assert found == pytest.approx(0.1 * -8 + 0.9 * 10 * urgency(3 if slope > 0 else 1), rel=1e-6)


@pytest.mark.parametrize("place", [0, 1])
def test_with_time_steps_as_target_each_sub_step_has_the_reward(of: Any, place: int) -> None:
    taught = learner(of, plants=3, channels=2, slowest=1.0, fastest=1.0, bootstrap="step")
    taught.scheduler.network, taught.target = Known(1.0), Known(10.0)
    batch, always = remembered(of, [0, -1, 1]), SimpleNamespace(integers=lambda *_, **__: np.array([place]))
    lesson = taught.scheduler.lesson(batch, always)
    assert taught.wanted(lesson, batch.reward) == pytest.approx(0.1 * -8 + 0.9 * 10 * urgency(3), rel=1e-6)


def test_a_flat_network_learns_from_whole_time_steps(of: Any) -> None:
    taught = learner(of, scheduler="flat", plants=3, channels=2, slowest=1.0, fastest=1.0)
    batch = remembered(of, [0, -1, 1])
    lesson = taught.scheduler.lesson(batch, np.random.default_rng(1))
    later = of.q_networks.values(taught.target, of.q_networks.of_whole(np.ones(3), batch.next_x, batch.next_seen))
    assert lesson.ends.all() and not lesson.taken.any()
    assert taught.wanted(lesson, batch.reward) == pytest.approx(0.1 * -8 + 0.9 * later.max(), rel=1e-5)


def test_a_training_of_size_smoke_forgets_nothing(of: Any) -> None:
    assert of.scheduling.budget_of(case(steps=150)).remembered >= 150


@pytest.mark.parametrize("scheduler", ["shared", "iterative", "flat", "flat_ordered"])
def test_updates_lead_to_the_reward_where_nothing_follows(of: Any, scheduler: str) -> None:
    taught = learner(of, scheduler=scheduler, discount=0.0, rate=0.01, updates=0, steps=9)
    trained(taught)
    taught.memory.reward[:] = -3.0
    for _ in range(300):
        taught.update()
    batch = taught.memory.drawn(32, np.random.default_rng(1))
    lesson = taught.scheduler.lesson(batch, np.random.default_rng(2))
    found = of.q_networks.values(taught.scheduler.network, lesson.view)[np.arange(32), lesson.action]
    ended = found[lesson.ends]
    assert len(ended) and ended == pytest.approx(-3, abs=0.3)


def test_a_scheduler_learns_to_serve_the_plant_that_needs_it(of: Any) -> None:
    options: dict[str, Any] = {"plants": 4, "channels": 1, "good": 1.0, "stay": 1.0, "fastest": 1.1, "hidden": 16}
    taught = learner(of, **options, steps=60, worlds=16, updates=8, batch=64)
    trained(taught)
    here, factors = taught.worlds.setting, taught.scheduler.factors
    weather = of.networked_plants.Weather.drawn(here, np.random.default_rng(5), 80, 60)
    turns = of.policies.round_robin(here, factors, np.random.default_rng(1))
    ours, theirs = (
        of.networked_plants.followed(here, factors, taught.gain, policy, weather, 30).cost
        for policy in (taught.policy(), turns)
    )
    assert taught.updates == 480 and ours < 0.9 * theirs


def test_gains_follow_the_arrivals_while_a_scheduler_learns(of: Any) -> None:
    taught = learner(of, updates=0, steps=200, good=0.3, stay=0.3)
    first = taught.gain.copy()
    taught.scheduler.choose = lambda network, x, seen, curious, random: (
        np.broadcast_to(np.array([0, 1, -1, -1, -1]), x.shape),
        np.zeros(len(x), np.int64),
    )
    trained(taught)
    assert (taught.gain[:2] < first[:2]).all(), "packets that arrive more often do less each"
    assert (taught.gain[2:] >= first[2:]).all() and taught.gain[3] > first[3]
    arrived = taught.worlds.arrived
    assert arrived[:2] == pytest.approx(0.3, abs=0.15) and (arrived[2:] < 0.01).all()


def test_a_shuffled_view_has_the_same_plants_in_another_order(of: Any) -> None:
    x, seen = np.arange(10.0).reshape(2, 5), np.arange(20).reshape(2, 5, 2) % 3 == 0
    view = of.training_worlds.View(True, np.random.default_rng(1))
    shown, channels = view.of(x, seen)
    assert (np.sort(shown, axis=1) == x).all() and (shown != x).any()
    for world in range(2):
        for plant in range(5):
            assert (channels[world, plant] == seen[world, int(shown[world, plant] - x[world, 0])]).all()
    assert of.training_worlds.View(False, np.random.default_rng(1)).of(10 * x, seen)[0].max() == of.training_worlds.CLIP


def test_policies_share_noise_and_channels_and_equal_ones_cost_the_same(of: Any) -> None:
    here = setting(of, plants=3, channels=3, good=1.0, stay=1.0)
    factors = here.factors(1)
    weather = of.networked_plants.Weather.drawn(here, np.random.default_rng(1), 40, 4)
    costs = of.scheduling.baseline_costs(here, factors, weather, 1)
    assert set(costs) == {each for name in of.policies.BASELINES for each in (name, f"{name}_unaware")}
    assert max(costs.values()) == pytest.approx(min(costs.values()), rel=1e-12)


@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 1000))
def test_all_schedulers_meet_the_same_plants_noise_and_channels(of: Any, seed: int) -> None:
    met = []
    for name in ("shared", "iterative", "flat"):
        facts = dict[str, Any]()
        context = SimpleNamespace(
            case=case(scheduler=name, steps=2, updates=1),
            seed=seed,
            facts=facts,
            counters={},
            recorder=SimpleNamespace(add=lambda *_, **__: None),
            at=lambda *_: None,
            check=lambda *_: None,
        )
        of.scheduling.run(context)
        del facts["costs"]["learned"]
        met.append((facts["plants"]["factors"], facts["costs"]))
    assert met[0] == met[1] == met[2]


@pytest.mark.parametrize("options", [{}, {"scheduler": "flat"}, {"shuffled": 1}, {"bootstrap": "step"}])
def test_a_launch_records_costs_work_and_how_it_learned(of: Any, options: dict[str, Any]) -> None:
    def body(context: RankContext) -> None:
        load_entry(PROGRAMS, "scheduling").run(context)
        assert context.facts["work"]["updates"] == 12 and context.facts["work"]["plants"] == 5
        rules = ("random", "round_robin", "greedy", "heuristic")
        assert set(context.facts["costs"]) == {"learned", *rules, *(f"{rule}_unaware" for rule in rules)}
        assert [check["passed"] for check in context.checks] == [True]

    assert run_ranks(case(**options), body) == [""]


def test_all_numbers_of_channels_are_timed_in_each_iteration(of: Any) -> None:
    def body(context: RankContext) -> None:
        load_entry(PROGRAMS, "decisions").run(context)
        one, three = (context.facts["schedules"][channels] for channels in "13")
        assert three["multiply_adds_of_schedule"] == 3 * one["multiply_adds_of_schedule"]
        assert three["outputs"] == one["outputs"] == 5
        assert context.recorder._count == 2 + 2 * 3, "start and end, and two numbers of channels in three iterations"

    assert run_ranks(case("decisions", channels="1-3"), body) == [""]


def test_a_network_larger_than_memory_is_an_obstacle_with_its_number(of: Any) -> None:
    reason, advice = of.scheduling.obstacle(case(scheduler="flat_ordered", plants=20, channels=15))
    assert "20274183401472000 outputs" in reason and "GiB to train; this machine has" in reason
    assert "fewer plants or channels" in advice
    assert of.scheduling.obstacle(case(scheduler="flat", plants=20, channels=15)) is None
    assert of.scheduling.obstacle(case(plants=50, channels=20)) is None
    assert of.action_space.memory_bytes(10, 4, 8) == 4 * 10 * (5 * 5 + 16)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"channels": 6}, "options.channels: 6 channels for 5 plants; give 1 to 5"),
        ({"channels": 0}, "options.channels: 0 is no whole number of at least 1"),
        ({"plants": 2.5}, "options.plants: 2.5 is no whole number of at least 1"),
        ({"fastest": "fast"}, "options.fastest: 'fast' is no number"),
        ({"worlds": 0}, "options.worlds: 0 is no whole number of at least 1"),
        ({"rate": 0}, "rate 0 must be above 0"),
        ({"discount": 1}, "discount 1 at least 0 and below 1"),
        ({"stay": 0.5}, "options.stay: 0.5 is too small for channels that are good 0.8 of the time; least 0.75"),
        ({"stay": 1.5}, "are no probabilities"),
        ({"slowest": 2.0}, "0 <= slowest <= fastest"),
        ({"bootstrap": "sub_steps"}, "options.bootstrap: unknown value 'sub_steps'; did you mean 'sub_step'"),
        ({"scheduler": "flatt"}, "options.scheduler: unknown value 'flatt'; did you mean 'flat'"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(of: Any, options: dict[str, Any], message: str) -> None:
    refused = case(**options)
    with pytest.raises(SpecError) as error:
        here = of.scheduling.setting_of(refused)
        of.scheduling.scheduler_of(refused, here, here.factors(1))
        of.scheduling.budget_of(refused)
    assert message in str(error.value) and "\n" not in str(error.value)


def test_a_list_of_channels_that_is_none_is_refused(of: Any) -> None:
    with pytest.raises(SpecError, match="options.channels: '5-x' is no list of numbers such as 5-10-15"):
        of.decisions.channels_of(case("decisions", channels="5-x"))


def test_a_missing_option_is_named(of: Any) -> None:
    options = {name: value for name, value in OPTIONS.items() if name != "stay"}
    base = {"program": "own", "entry": "scheduling", "suite": "dira2019", "experiment": "e", "arm": "a", "ranks": 1}
    with pytest.raises(Exception, match="stay"):
        of.scheduling.setting_of(case_from({**base, "options": options}))


def test_a_setting_is_frozen(of: Any) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        setting(of).plants = 9
