"""D1 to D12 for a directed graph, given as its arcs and the host of every node. Imports SciPy: for programs that use it
anyway."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from scaleproof.workloads.inputs.findings import Finding, Findings
from scaleproof.workloads.inputs.statistics import (
    against_exponential,
    fit_tail,
    goodness_of_fit,
    last_level_cache,
    rank_correlation,
)

LARGE = 4
"""A graph is large when its arcs take this many times the last-level cache."""
ARC_BYTES = 12
"""Of one arc in a compressed matrix: a 4-byte index and an 8-byte value."""
UNUSED, DANGLING, DEGREE, HOST, TWICE, ORDER = 0.05, (0.01, 0.5), (5.0, 40.0), 0.5, 0.01, 0.2
STRONG, WEAK = (0.15, 0.9), 0.8
EXPONENT = (1.8, 3.0)
HEAVIER, LAW, REPEATS, MOST_DEGREES = 2.0, 0.02, 50, 20_000
NEAR = 0.02
"""A KS distance that hardly matters, however sure it is: with enough nodes any law is refuted."""


@dataclass(frozen=True)
class WebGraph:
    """Arcs source -> target between `nodes` nodes, and the host of each; `recipe` makes it again."""

    name: str
    nodes: int
    source: np.ndarray
    target: np.ndarray
    host: np.ndarray
    recipe: str

    @property
    def arcs(self) -> int:
        """Number of arcs."""
        return len(self.source)


def graph_inputs(graph: WebGraph, expected_nodes: int, seed: int, *, large_scale: bool = False) -> list[Finding]:
    """All checks of a graph of which the case asked for `expected_nodes`, and whose claims are about large graphs or
    not; the seed is that of the null and of the fit. Bounds and their origin are in docs/inputs.md."""
    found = Findings(graph.name)
    _size(found, graph, expected_nodes, large_scale)
    if not _ids(found, graph):
        return found.found
    into = np.bincount(graph.target, minlength=graph.nodes)
    out = np.bincount(graph.source, minlength=graph.nodes)
    _nodes(found, graph, into, out)
    _components(found, graph)
    _arcs(found, graph, seed)
    _tail(found, graph, into, seed)
    _order(found, graph, into)
    return sorted(found.found, key=lambda finding: int(finding.check[1:]))


def _size(found: Findings, graph: WebGraph, expected_nodes: int, large_scale: bool) -> None:
    found.judge(
        "D1",
        "provenance",
        graph.recipe,
        "generator, parameters and seed recorded",
        bool(graph.recipe),
        "made in every launch from its seed",
    )
    found.judge("D2", "nodes", graph.nodes, f"{expected_nodes}", graph.nodes == expected_nodes, otherwise="fail")
    cache = last_level_cache()
    share = graph.arcs * ARC_BYTES / cache if cache else None
    if large_scale and share is not None:
        found.at_least("D2", "arcs over last-level cache", share, LARGE, "bytes of the matrix over bytes of the cache")
    else:
        found.absent("D2", "arcs over last-level cache", "no claim about large graphs rests on this size", share)


def _ids(found: Findings, graph: WebGraph) -> bool:
    """Whether they are in range; the other checks count them and could not."""
    ends = [int(end) for side in (graph.source, graph.target) for end in (side.min(), side.max())]
    lowest, highest = min(ends), max(ends)
    found.judge(
        "D3",
        "ids of arcs",
        f"{lowest} to {highest}",
        f"0 to {graph.nodes - 1}",
        lowest >= 0 and highest < graph.nodes,
        otherwise="fail",
    )
    return found.found[-1].outcome == "pass"


def _nodes(found: Findings, graph: WebGraph, into: np.ndarray, out: np.ndarray) -> None:
    found.at_most(
        "D3", "isolated nodes", float(((into == 0) & (out == 0)).mean()), UNUSED, "share of ids without any arc"
    )
    found.between(
        "D4",
        "dangling nodes",
        float((out == 0).mean()),
        *DANGLING,
        detail="share of nodes without out-arcs, isolated ones included",
    )
    found.between("D6", "average degree", graph.arcs / graph.nodes, *DEGREE, detail="arcs per node")


def _components(found: Findings, graph: WebGraph) -> None:
    matrix = csr_array((np.ones(graph.arcs, np.int8), (graph.source, graph.target)), shape=(graph.nodes, graph.nodes))
    for name in ("strong", "weak"):
        largest = np.bincount(connected_components(matrix, connection=name)[1]).max() / graph.nodes
        if name == "strong":
            found.between("D5", "largest strong component", float(largest), *STRONG, detail="share of nodes")
        else:
            found.at_least("D5", "largest weak component", float(largest), WEAK, "share of nodes")


def _arcs(found: Findings, graph: WebGraph, seed: int) -> None:
    found.at_most(
        "D7",
        "repeated arcs",
        1 - len(np.unique(graph.source * graph.nodes + graph.target)) / graph.arcs,
        TWICE,
        "share of arcs",
    )
    found.at_most("D7", "self loops", float((graph.source == graph.target).mean()), TWICE, "share of arcs")
    found.absent("D7", "rows shared by train and test", "nothing is trained")
    linked = np.union1d(graph.source, graph.target)
    found.at_most(
        "D8", "largest host", float(np.bincount(graph.host[linked]).max() / len(linked)), HOST, "share of linked nodes"
    )
    inside = float((graph.host[graph.source] == graph.host[graph.target]).mean())
    null = np.random.default_rng([seed, 11]).permutation(graph.target)
    by_chance = float((graph.host[graph.source] == graph.host[null]).mean())
    detail = (
        f"share of arcs inside hosts {inside:.3g}, with targets exchanged at random (degrees kept) "
        f"{by_chance:.3g}; what the null has too is no structure"
    )
    found.at_least("D11", "links inside hosts above the null", inside - by_chance, 0.1, detail)


def _tail(found: Findings, graph: WebGraph, into: np.ndarray, seed: int) -> None:
    into = into[into > 0]
    fit = fit_tail(into)
    if fit is None:
        found.at_least("D9", "heavy tail of in-degrees", 0.0, HEAVIER, "no tail of 50 nodes with 6 or more arcs in")
        return
    found.at_least(
        "D9",
        "heavy tail of in-degrees",
        against_exponential(into, fit),
        HEAVIER,
        "Vuong's statistic of a power law against an exponential tail",
    )
    generator = np.random.default_rng([seed, 12])
    some = into if len(into) <= MOST_DEGREES else generator.choice(into, MOST_DEGREES, replace=False)
    fitted = fit_tail(some) or fit
    likely = goodness_of_fit(some, fitted, seed, REPEATS)
    detail = (
        f"share of {REPEATS} samples of the fitted law that fit worse; exponent {fitted.exponent:.2f} from "
        f"{fitted.smallest} on"
    )
    bound = f"at least {LAW:g}, or a KS distance of at most {NEAR:g}"
    found.judge(
        "D9",
        "power law of in-degrees",
        likely,
        bound,
        likely >= LAW or fitted.distance <= NEAR,
        f"{detail}; KS distance {fitted.distance:.4f}",
    )
    detail = (
        f"a generated marginal against the published one; KS distance to the fitted law {fit.distance:.4f}, "
        f"from {fit.smallest} arcs on"
    )
    found.between("D12", "exponent of in-degrees", fit.exponent, *EXPONENT, detail=detail)


def _order(found: Findings, graph: WebGraph, into: np.ndarray) -> None:
    tied = rank_correlation(np.arange(graph.nodes), into)
    found.between(
        "D10",
        "order of ids",
        tied,
        -ORDER,
        ORDER,
        detail="Spearman's correlation of id and in-degree: are the nodes sorted?",
    )
