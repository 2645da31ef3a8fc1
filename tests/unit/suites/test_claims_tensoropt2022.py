"""What tensoropt2022's metrics make of launches: errors and orders of strategies, and how searches grow."""

from __future__ import annotations

import math
from itertools import product
from pathlib import Path

import pytest

from scaleproof.claims.arithmetic import Published
from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.made_up import Event, events
from scaleproof.claims.suite_metrics import load_models
from scaleproof.spec.case import OwnCase
from scaleproof.spec.suite import load_suite
from tests.short_form import case_from

SUITE = Path(__file__).resolve().parents[3] / "suites" / "tensoropt2022"
MODELS = load_models(SUITE / "models" / "__init__.py")
strategies, searches, frontiers = MODELS.strategies, MODELS.searches, MODELS.frontiers
growth, ends, NONE = MODELS.growth, MODELS.ends, Published()
WAYS = ("4x1x1-4x1x1", "1x4x1-1x1x4", "2x2x1-2x1x2")


def case(options: dict[str, object], ranks: int = 4) -> OwnCase:
    made = case_from(
        {
            "program": "own",
            "entry": "divided_training",
            "suite": "tensoropt2022",
            "experiment": "times",
            "arm": "a",
            "transport": "tcp",
            "ranks": ranks,
            "iterations": 2,
            "warmup": 0,
            "fabric": {"name": "netns", "link_mbit": 100},
            "options": options,
        }
    )
    assert isinstance(made, OwnCase)
    return made


def strategy(ways: str, seconds: float, mib: float) -> Launch:
    of = case({"ways": ways, "features": "64-64-32", "batch": 128, "flops": 1e9, "slept": 1})
    made = events(Event("step", 0.0, seconds), Event("peak_mib", value=mib))
    return Launch(made.record(of), made.samples(4))


def predicted(ways: str) -> tuple[float, float]:
    """MiB, and s of both steps."""
    memory, seconds = strategies.strategy_cost("64-64-32", ways, 128, 1e9, 8e-8, 4)
    return memory / (1 << 20), 2 * seconds


def block(time_factors: tuple[float, ...] = (1, 1, 1), memory_factors: tuple[float, ...] = (1, 1, 1)) -> list[Launch]:
    launches = []
    for ways, slower, larger in zip(WAYS, time_factors, memory_factors, strict=True):
        mib, seconds = predicted(ways)
        launches.append(strategy(ways, slower * seconds, larger * mib))
    return launches


def test_data_parallelism_keeps_all_weights_and_adds_up_their_gradients() -> None:
    mib, seconds = predicted(WAYS[0])
    weights = 64 * 64 + 64 + 64 * 32 + 32
    assert mib * (1 << 20) == 3 * 4 * weights + 128 / 4 * 4 * (64 + 64 + 32)
    messages = 2 * 3 * (2 * 1e-4) + 2 * 3 / 4 * 4 * weights * 8e-8
    flop = 128 * 2 * (2 * 64 * 64 + 3 * 64 * 32)
    assert seconds == pytest.approx(2 * (messages + flop / 4 / 1e9))


def test_errors_are_the_mean_over_strategies() -> None:
    assert strategies.strategy_time_error(block()) == pytest.approx(0)
    slower = strategies.strategy_time_error(block((1.25, 1, 1)))
    assert slower == pytest.approx(0.2 / 3), "predicted over measured"
    assert strategies.strategy_memory_error(block(memory_factors=(1, 2, 1))) == pytest.approx(0.5 / 3)
    assert strategies.strategy_time_error([]) is None


def test_orders_within_the_floor_are_open() -> None:
    assert strategies.strategy_time_correlation(block()).value == 1
    seconds = [predicted(ways)[1] for ways in WAYS]
    reversed_order = tuple(min(seconds) ** 2 / each / each for each in seconds)
    assert strategies.strategy_time_correlation(block(reversed_order)).value == -1
    level = tuple(1 / each for each in seconds)
    found = strategies.strategy_time_correlation(block(level), 0.1)
    assert (found.low, found.high) == (-1, 1)
    assert strategies.strategy_time_correlation(block()[:2]) is None


def searched(method: str, configurations: int, seconds: float) -> Launch:
    of = case({"method": method, "operators": 6, "configurations": configurations, "seed": 1}, ranks=1)
    made = events(Event("step", 0.0, seconds))
    return Launch(made.record(of), made.samples(1))


def test_a_factor_of_the_configurations_is_an_exponent_of_one() -> None:
    launches = [
        searched("dynamic", 4, 0.1),
        searched("elimination", 4, 0.2),
        searched("dynamic", 16, 1.0),
        searched("elimination", 16, 8.0),
    ]
    assert searches.growth_saved(launches).value == pytest.approx(1)
    noisy = searches.growth_saved(launches, 0.1)
    assert noisy.low < 1 < noisy.high
    assert searches.growth_saved(launches[:3]) is None


def test_the_time_of_a_search_grows_with_a_power_of_the_configurations() -> None:
    launches = [searched("elimination", count, 1e-3 * count**3) for count in (4, 8, 16)]
    assert searches.search_growth(launches).value == pytest.approx(3)
    noisy = searches.search_growth(launches, 0.1)
    assert noisy.low < noisy.value < noisy.high
    assert searches.search_growth(launches[:1]) is None


def test_elimination_forms_a_product_for_each_three_configurations_and_dynamic_programming_for_each_two() -> None:
    def products(method: str, count: int) -> int:
        return growth.products_of(growth._frontier(4, count, 1, method))

    ends_of_chain = 3 * 3 + 3 + 3  # a fold of the last two operators and the union
    assert products("dynamic", 3) == 3 * (3 * 3 + 3) + 3
    assert products("elimination", 3) == 2 * (3**3 + 3**2) + ends_of_chain
    exponents = [
        growth.products_growth(growth.Searched(operators=4, configurations=(4, 8), seed=1, method=method), NONE)
        for method in ("dynamic", "elimination")
    ]
    assert exponents[0] < 2 < exponents[1] < 3


def test_a_frontier_is_a_small_part_of_all_strategies() -> None:
    chain = growth.Chain(operators=4, configurations=(2, 4), seed=1)
    points = [len(growth._frontier(4, count, 1, "dynamic")) for count in (2, 4)]
    assert growth.points_share(chain, NONE) == max(points[0] / 2**4, points[1] / 4**4)
    assert growth.points_growth(chain, NONE) == pytest.approx(math.log(points[1] / points[0]) / math.log(4**4 / 2**4))


def test_mini_time_without_a_cap_is_the_fastest_and_slower_with_the_least_memory() -> None:
    network = frontiers.OfNetwork(workload="vgg_a", batch=64, devices=4)
    assert ends.mini_time_over_fastest(network, NONE) == pytest.approx(1, abs=1e-9)
    assert ends.least_memory_over_smallest(network, NONE) == pytest.approx(1, abs=1e-9)
    assert ends.capped_over_fastest(network, NONE) > 1.01


def test_a_search_that_misses_the_fastest_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    layers = ends.OfLayers(features="64-64-32", batch=128, flops=1e9, link_mbit=100.0, devices=4)
    assert ends.layers_mini_time_over_fastest(layers, NONE) == pytest.approx(1, abs=1e-9)
    monkeypatch.setattr(ends, "within", lambda frontier, memory: 0)
    assert ends.layers_mini_time_over_fastest(layers, NONE) > 1.01


def test_frontiers_of_drawn_graphs_are_those_of_all_strategies() -> None:
    drawn = frontiers.RandomGraphs(graphs=20, operators=5, configurations=3)
    assert frontiers.frontier_mismatches(drawn, Published()) == 0
    assert frontiers.ends_mismatches(drawn, Published()) == 0


def test_a_frontier_that_is_behind_somewhere_is_not_ahead_of_half() -> None:
    on = frontiers.OfNetwork(workload="vgg_a", batch=64, devices=4)
    assert frontiers.ahead_of_half(on, Published()) == 1
    alike = frontiers.OfNetwork(workload="vgg_a", batch=64, devices=1)
    assert frontiers.least_memory(on, Published()) < frontiers.least_memory(alike, Published())
    roomy = frontiers.Capped(workload="vgg_a", batch=64, devices=4, memory_gb=1000.0)
    assert frontiers.time_in_memory(roomy, Published()) == frontiers.least_time(on, Published())
    assert frontiers.time_in_memory(roomy.model_copy(update={"memory_gb": 1e-3}), Published()) == float("inf")


def costs(of: OwnCase, link_mbit: float) -> list[tuple[float, float, str]]:
    """Memory, time and ways of every strategy of a case's network over links of such a rate."""
    options = of.options
    made = strategies.divided_layers(options["features"], options["batch"], options["flops"], 8e-6 / link_mbit, 4)
    found = []
    for ways in product(*made.ways.values()):
        choices = {name: made.ways[name].index(way) for name, way in zip(made.ways, ways, strict=True)}
        written = "-".join(f"{way.data}x{way.rows}x{way.columns}" for way in ways)
        found.append((*made.graph.cost(choices), written))
    return sorted(found)


def planned(experiment: str) -> dict[str, OwnCase]:
    cases = load_suite(SUITE).experiment(experiment).size("small").cases
    return {each.arm: each for each in cases if isinstance(each, OwnCase)}


@pytest.mark.parametrize("experiment", ["times", "memory"])
def test_the_strategies_that_are_run_are_the_frontier_over_links_of_100_mbit(experiment: str) -> None:
    arms, frontier, least = planned(experiment), [], float("inf")
    for _, seconds, ways in costs(arms["data"], 100):
        if seconds < least:
            frontier.append(ways)
            least = seconds
    assert [arms[f"frontier_{number}"].options["ways"] for number in range(1, 7)] == frontier


def test_what_trains_under_the_cap_is_the_strategy_with_the_least_time_that_fits() -> None:
    case = planned("memory")["divided_capped"]
    cap = float(case.options["cap_mib"]) * 2**20
    _, ways = min((seconds, ways) for memory, seconds, ways in costs(case, 100) if memory <= cap)
    assert case.options["ways"] == ways
    (data,) = (memory for memory, _, ways in costs(case, 100) if ways == "4x1x1-4x1x1-4x1x1")
    assert data > cap
