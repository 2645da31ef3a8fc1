"""How the work of a search and the size of its frontier grow with the number of configurations, counted."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import Annotated

import numpy as np
from pydantic import Field

from scaleproof.claims.arithmetic import Arguments, Count, Published
from scaleproof.claims.metrics import Metric
from scaleproof.frontiers.cost_graph import CostGraph, Costs, Method, frontier_of
from scaleproof.frontiers.points import Frontier

Configurations = Annotated[tuple[Annotated[int, Field(ge=2, le=32)], ...], Field(min_length=1, strict=False)]


class Chain(Arguments):
    """A chain of operators with costs that are drawn, whole numbers nowhere, so that few strategies tie."""

    operators: int = Field(ge=3, le=12, description="Of the chain.")
    configurations: Configurations = Field(description="Of each operator, in one chain after the other.")
    seed: Count = Field(description="Of the costs.")


class Searched(Chain):
    """The same with a way to search it."""

    method: Method = Field(description="How the chain is taken apart.")


@lru_cache(maxsize=64)
def _frontier(operators: int, configurations: int, seed: int, method: Method) -> Frontier:
    random = np.random.default_rng([seed, operators, configurations])

    def costs(*shape: int) -> Costs:
        return Costs(random.random(shape), random.random(shape))

    names = [f"op{number}" for number in range(operators)]
    edges = {pair: costs(configurations, configurations) for pair in pairwise(names)}
    return frontier_of(CostGraph({name: costs(configurations) for name in names}, edges), method=method)


def products_of(frontier: Frontier) -> int:
    """Products of two frontiers that were formed on the way to this one."""
    seen, count, left = {id(frontier)}, 0, [frontier]
    while left:
        for pair in left.pop().sources:
            parts = [each for each in pair if isinstance(each, Frontier)]
            count += len(parts) == 2
            left += [each for each in parts if id(each) not in seen]
            seen |= {id(each) for each in parts}
    return count


def slope(x: list[float], y: list[float]) -> float:
    """Of the straight line through the logarithms, by least squares: the exponent of a power."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def products_growth(x: Searched, rows: Published) -> float:
    """With which power of the number of configurations the work of a search grows, in products of two frontiers (suite
    tensoropt2022).

    products_growth = slope of log products against log configurations, by least squares

    Every product that the search forms is counted, whether its points are kept or not. Arithmetic, no launches.
    """
    products = [products_of(_frontier(x.operators, count, x.seed, x.method)) for count in x.configurations]
    return slope(list(map(float, x.configurations)), list(map(float, products)))


def points_growth(x: Chain, rows: Published) -> float:
    """With which power of the number of strategies the frontier grows (suite tensoropt2022).

    points_growth = slope of log points against log strategies, by least squares; strategies = configurations^operators

    1: it is as long as the list of all strategies. Arithmetic, no launches.
    """
    return slope([float(count) ** x.operators for count in x.configurations], _points(x))


def points_share(x: Chain, rows: Published) -> float:
    """The largest share of all strategies that is on the frontier (suite tensoropt2022).

    points_share = points / configurations^operators

    Arithmetic, no launches.
    """
    return max(points / count**x.operators for points, count in zip(_points(x), x.configurations, strict=True))


def _points(x: Chain) -> list[float]:
    return [float(len(_frontier(x.operators, count, x.seed, "dynamic"))) for count in x.configurations]


METRICS = [
    Metric("products_growth", "1", "lower", model=products_growth, x=Searched),
    Metric("points_growth", "1", "lower", model=points_growth, x=Chain),
    Metric("points_share", "fraction", "lower", model=points_share, x=Chain),
]
