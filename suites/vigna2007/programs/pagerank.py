"""PageRank of one synthetic graph by all methods: checks the graph, determines how many iterations each method needs,
then times that many."""

from __future__ import annotations

import itertools

import numpy as np
from suite_programs.graphs import expected_nodes, make
from suite_programs.methods import DAMPING, METHODS, Problem, iterations_to, solve

from scaleproof.core.context import RankContext
from scaleproof.core.recorder import now
from scaleproof.programs.common import mark, timed_iterations
from scaleproof.spec.case import OwnCase
from scaleproof.workloads.inputs.findings import settle
from scaleproof.workloads.inputs.graphs import WebGraph, graph_inputs

LIMIT = 200
"""Power iteration needs at most log(tolerance) / log(0.85) steps: 142 for 1e-10."""


def run(context: RankContext) -> None:
    """See the module; the arm names the graph. A sample is one solve, `value` its iterations."""
    case = context.case
    assert isinstance(case, OwnCase)
    context.at(-1, "graph")
    graph = _graph(case, context.seed)
    context.at(-1, "input checks")
    expected = expected_nodes(case.arm, int(case.options["nodes"]), float(case.options["isolated"]))
    large_scale = bool(case.options.get("large_scale", 0))
    settle(context.inputs, graph_inputs(graph, expected, context.seed, large_scale=large_scale))
    context.at(-1, "iterations")
    problem, tolerance = Problem(graph.nodes, graph.source, graph.target), float(case.options["tolerance"])
    counts = {method: iterations_to(problem, method, tolerance, LIMIT) for method in METHODS}
    context.facts["graph"] = {
        "name": graph.name,
        "nodes": graph.nodes,
        "arcs": graph.arcs,
        "recipe": graph.recipe,
        "hosts": int(graph.host[-1]) + 1,
    }
    context.facts["convergence"] = {
        "tolerance": tolerance,
        "norm": "1-norm of x - G x",
        "damping": DAMPING,
        "iterations": counts,
    }
    for method, count in counts.items():
        context.check(
            f"{method}.converges",
            count is not None,
            f"{count} iterations" if count else f"{LIMIT} iterations do not reach {tolerance:g}",
        )
    converged = {method: count for method, count in counts.items() if count is not None}
    results = _timed(context, case, problem, converged)
    _verify(context, problem, results, tolerance)


def _graph(case: OwnCase, seed: int) -> WebGraph:
    options = case.options
    nodes, hosts = int(options["nodes"]), int(options["hosts"])
    return make(case.arm, nodes, hosts, float(options["degree"]), float(options["isolated"]), seed)


def _timed(context: RankContext, case: OwnCase, problem: Problem, counts: dict[str, int]) -> dict[str, np.ndarray]:
    """Times all methods, in a new random order in every iteration. Returns the last result of each method."""
    generator, results = np.random.default_rng([context.seed, 4]), {}
    mark(context, "start", 0)
    for iteration in timed_iterations(context, case.warmup, case.iterations):
        for method in generator.permutation(sorted(counts)).tolist():
            context.at(iteration, method)
            start = now()
            results[method] = solve(problem, method, counts[method])
            context.recorder.add(method, iteration, start, now(), value=counts[method])
    mark(context, "end", 0)
    return results


def _verify(context: RankContext, problem: Problem, results: dict[str, np.ndarray], tolerance: float) -> None:
    """Checks that every result is a stationary distribution, and that all results agree within two errors of tolerance
    / (1 - DAMPING)."""
    for method, x in results.items():
        residual, apart = problem.residual(x), abs(float(x.sum()) - 1)
        detail = f"residual {residual:.2e}, tolerance {tolerance:.0e}; smallest {x.min():.2e}, sum - 1 {apart:.1e}"
        context.check(f"{method}.converged", residual <= tolerance and x.min() >= 0 and apart <= 1e-9, detail)
    for first, second in itertools.combinations(sorted(results), 2):
        apart, bound = float(np.abs(results[first] - results[second]).sum()), 2 * tolerance / (1 - DAMPING)
        context.check(
            f"{first}.{second}.agree", apart <= bound, f"1-norm of the difference {apart:.2e}, bound {bound:.2e}"
        )


PRELOAD = ("scipy.sparse.linalg", "scipy.sparse.csgraph")
