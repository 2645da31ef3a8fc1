"""The PageRank methods against NetworkX and an eigenvector, the graphs against what their names say, the metrics
against hand-made records."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import networkx
import numpy as np
import pandas as pd
import pytest

from scaleproof.claims.claims_yaml import load_published
from scaleproof.claims.suite_metrics import suite_metrics
from scaleproof.core.record_schema import InputCheck, RankStatus
from scaleproof.programs.own import load_entry
from tests.unit.claims.claims_samples import arithmetic
from tests.unit.records import record

ROOT = Path(__file__).parents[3]
PROGRAMS = ROOT / "suites" / "vigna2007" / "programs"
NODES, HOSTS, SEED = 400, 10, 4


@pytest.fixture(scope="module")
def programs() -> Any:
    """The suite's modules `graphs` and `methods`, as its program imports them."""
    before = {name: module for name, module in sys.modules.items() if name.startswith("suite_programs")}
    for name in before:
        del sys.modules[name]
    load_entry(PROGRAMS, "graphs")
    modules = importlib.import_module("suite_programs.graphs"), importlib.import_module("suite_programs.methods")
    yield modules
    for name in [name for name in sys.modules if name.startswith("suite_programs")]:
        del sys.modules[name]
    sys.modules.update(before)


def made(graphs: ModuleType, kind: str, nodes: int = NODES, seed: int = SEED) -> Any:
    return graphs.make(kind, nodes, HOSTS, 8.0, 0.49, seed)


def networkx_pagerank(graph: Any) -> np.ndarray:
    directed = networkx.DiGraph()
    directed.add_nodes_from(range(graph.nodes))
    directed.add_edges_from(zip(graph.source.tolist(), graph.target.tolist(), strict=True))
    ranks = networkx.pagerank(directed, alpha=0.85, tol=1e-14, max_iter=500)
    return np.array([ranks[node] for node in range(graph.nodes)])


def google_matrix(graph: Any) -> np.ndarray:
    """The full one, by NumPy."""
    google = np.zeros((graph.nodes, graph.nodes))
    google[graph.target, graph.source] = 1
    google[:, google.sum(axis=0) == 0] = 1
    return 0.85 * google / google.sum(axis=0) + 0.15 / graph.nodes


def eigenvector(graph: Any) -> np.ndarray:
    """PageRank as the eigenvector of the full Google matrix, by NumPy."""
    values, vectors = np.linalg.eig(google_matrix(graph))
    largest = np.real(vectors[:, np.argmax(np.abs(values))])
    return largest / largest.sum()


@pytest.mark.parametrize("kind", ["web", "one_host", "padded"])
def test_all_methods_agree_with_networkx_and_the_eigenvector(programs: Any, kind: str) -> None:
    graphs, methods = programs
    graph = made(graphs, kind)
    problem = methods.Problem(graph.nodes, graph.source, graph.target)
    expected = networkx_pagerank(graph)
    assert np.abs(expected - eigenvector(graph)).sum() < 1e-10
    for method in methods.METHODS:
        count = methods.iterations_to(problem, method, 1e-10, 200)
        assert np.abs(methods.solve(problem, method, count) - expected).sum() < 2e-10 / 0.15


@pytest.mark.parametrize("method", ["power", "gauss_seidel", "gmres"])
def test_the_count_of_iterations_is_the_smallest_that_does(programs: Any, method: str) -> None:
    graphs, methods = programs
    graph = made(graphs, "web")
    problem = methods.Problem(graph.nodes, graph.source, graph.target)
    count = methods.iterations_to(problem, method, 1e-8, 200)
    assert (
        problem.residual(methods.solve(problem, method, count))
        <= 1e-8
        < problem.residual(methods.solve(problem, method, count - 1))
    )
    assert methods.iterations_to(problem, method, 1e-8, 3) is None


def dense_iterations(graph: Any, method: str, tolerance: float) -> int:
    """The same count by full matrices: Gauss-Seidel solves for the lower triangle of I - 0.85 P' in each sweep."""
    google, even = google_matrix(graph), np.full(graph.nodes, 1 / graph.nodes)
    links = np.zeros((graph.nodes, graph.nodes))
    links[graph.target, graph.source] = 0.85 / np.bincount(graph.source, minlength=graph.nodes)[graph.source]
    system, y = np.eye(graph.nodes) - links, even
    for count in range(1, 200):
        y = google @ y if method == "power" else np.linalg.solve(np.tril(system), even - np.triu(system, 1) @ y)
        x = y / y.sum()
        if np.abs(google @ x - x).sum() <= tolerance:
            return count
    raise AssertionError("200 iterations are too few")


@pytest.mark.parametrize("kind", ["web", "one_host", "shuffled"])
def test_other_code_counts_as_many_iterations(programs: Any, kind: str) -> None:
    """So that a claim on them is about the method and the graph, not about what our loop counts."""
    graphs, methods = programs
    graph = made(graphs, kind, 200)
    problem = methods.Problem(graph.nodes, graph.source, graph.target)
    for method in ("power", "gauss_seidel"):
        assert methods.iterations_to(problem, method, 1e-8, 200) == dense_iterations(graph, method, 1e-8)


def test_a_step_keeps_the_mass_and_gives_the_dangling_one_to_all(programs: Any) -> None:
    _, methods = programs
    problem = methods.Problem(3, np.array([0, 1]), np.array([1, 2]))  # a path; page 2 has no link
    x = np.array([0.2, 0.3, 0.5])
    even = (0.85 * 0.5 + 0.15) / 3
    assert problem.step(x) == pytest.approx([even, 0.85 * 0.2 + even, 0.85 * 0.3 + even])


def test_the_graphs_are_what_their_names_say(programs: Any) -> None:
    graphs, _ = programs
    by_kind = {kind: made(graphs, kind, 4000) for kind in graphs.KINDS}
    silent = {kind: 1 - len(np.unique(graph.source)) / graph.nodes for kind, graph in by_kind.items()}
    linked = {kind: len(np.union1d(graph.source, graph.target)) / graph.nodes for kind, graph in by_kind.items()}
    assert silent["web"] == pytest.approx(0.15, abs=0.03) and silent["one_host"] == silent["no_dangling"] == 0
    assert linked["web"] == 1 and linked["padded"] == pytest.approx(0.51, abs=0.001)
    assert {kind for kind, graph in by_kind.items() if graph.host.max() == 0} == {"one_host"}
    assert by_kind["padded"].arcs == by_kind["web"].arcs
    assert all(
        "synthetic" in graph.name and "synthetic" in graph.recipe and f"seed {SEED}" in graph.recipe
        for graph in by_kind.values()
    )
    assert all(
        len(np.unique(graph.source * graph.nodes + graph.target)) == graph.arcs
        and not (graph.source == graph.target).any()
        for graph in by_kind.values()
    )


def test_the_shuffle_keeps_every_degree(programs: Any) -> None:
    graphs, _ = programs
    web, null = made(graphs, "web", 4000), made(graphs, "shuffled", 4000)
    for side in ("source", "target"):
        assert np.array_equal(
            np.bincount(getattr(web, side), minlength=4000), np.bincount(getattr(null, side), minlength=4000)
        )
    assert not np.array_equal(web.target, null.target)


def test_the_same_seed_makes_the_same_graph_and_another_one_another(programs: Any) -> None:
    graphs, _ = programs
    assert np.array_equal(made(graphs, "web").target, made(graphs, "web").target)
    assert not np.array_equal(made(graphs, "web", seed=5).target[:100], made(graphs, "web").target[:100])
    with pytest.raises(ValueError, match="no graph is called 'webb'"):
        made(graphs, "webb")


SUITE = PROGRAMS.parent


def launch() -> tuple[Any, pd.DataFrame]:
    """Power iteration needs 40 steps and 2 s, Gauss-Seidel 20 and 3 s; GMRES does not converge. The warm-up is
    slower."""
    facts = {
        "graph": {"nodes": 100, "arcs": 700},
        "convergence": {"iterations": {"power": 40, "gauss_seidel": 20, "gmres": None}},
    }
    rank = RankStatus(rank=0, pid=1, exit_code=0, signal=None, status="ok", step=0, operation="", facts=facts)
    checks = [
        InputCheck(check="D3", dataset="d", name="n", value=1.0, bound="b", outcome=outcome)
        for outcome in ("warn", "pass", "warn", "not applicable")
    ]
    rows = [
        (method, warmup, 0, seconds * 10**9)
        for method, seconds in (("power", 2), ("gauss_seidel", 3))
        for warmup in (False, False)
    ]
    rows += [("power", True, 0, 9 * 10**9)]
    return record(ranks=[rank], inputs=checks), pd.DataFrame(rows, columns=["event", "warmup", "start_ns", "end_ns"])


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        ("power_iterations", 40),
        ("gauss_seidel_work", 0.5),
        ("gmres_work", None),
        ("gauss_seidel_time", 1.5),
        ("gmres_time", None),
        ("nodes_per_s", 2000),
        ("arcs_per_s", 14_000),
        ("input_warnings", 2),
    ],
)
def test_metrics_of_a_launch(metric: str, value: float | None) -> None:
    metric_value = suite_metrics(SUITE)[metric].launch
    assert metric_value is not None and metric_value(*launch()) == value
    assert metric_value(record(), launch()[1].iloc[:0]) is None


def test_the_published_rows_agree_with_each_other() -> None:
    metrics, rows = suite_metrics(SUITE), load_published(SUITE)
    arcs, share = metrics["published_arcs_per_node"], metrics["published_share"]
    counted = {"arcs": "vigna2007.altavista2002.arcs", "nodes": "vigna2007.altavista2002.nodes"}
    assert arithmetic(arcs, rows, **counted) == pytest.approx(4.695, abs=5e-4)
    assert arithmetic(share, rows, part=150532, whole="vigna2007.web_stanford.nodes") == pytest.approx(53.4, abs=0.05)
