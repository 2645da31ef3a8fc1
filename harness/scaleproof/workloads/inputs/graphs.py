"""Checks D1 to D12 of a directed graph, given by its arcs and the host of every node. Imports SciPy, so only programs
that use SciPy anyway should import this module."""

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
"""Bytes of an arc in a compressed matrix: a 4-byte index and an 8-byte value."""
UNUSED, DANGLING, DEGREE, HOST, TWICE, ORDER = 0.05, (0.01, 0.5), (5.0, 40.0), 0.5, 0.01, 0.2
STRONG, WEAK = (0.15, 0.9), 0.8
EXPONENT = (1.8, 3.0)
HEAVIER, LAW, REPEATS, MOST_DEGREES = 2.0, 0.02, 50, 20_000
NEAR = 0.02
"""A KS distance that is negligible even if it is significant: with enough nodes any law is refuted."""


@dataclass(frozen=True)
class WebGraph:
    """Arcs source -> target between `nodes` nodes, and the host of each node. `recipe`: how the graph was made."""

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
    """All checks of a graph. `expected_nodes`: nodes that the case requests; `large_scale`: whether claims are about
    large graphs; `seed`: of the null and of the fit. docs/inputs.md explains the bounds."""
    findings = Findings(graph.name)
    _size(findings, graph, expected_nodes, large_scale)
    if not _ids(findings, graph):
        return findings.findings
    into = np.bincount(graph.target, minlength=graph.nodes)
    out = np.bincount(graph.source, minlength=graph.nodes)
    _nodes(findings, graph, into, out)
    _components(findings, graph)
    _arcs(findings, graph, seed)
    _tail(findings, graph, into, seed)
    _order(findings, graph, into)
    return sorted(findings.findings, key=lambda finding: int(finding.check[1:]))


def _size(findings: Findings, graph: WebGraph, expected_nodes: int, large_scale: bool) -> None:
    findings.judge(
        "D1",
        "provenance",
        graph.recipe,
        "generator, parameters and seed recorded",
        bool(graph.recipe),
        "made in every launch from its seed",
    )
    findings.judge("D2", "nodes", graph.nodes, f"{expected_nodes}", graph.nodes == expected_nodes, otherwise="fail")
    cache = last_level_cache()
    share = graph.arcs * ARC_BYTES / cache if cache else None
    if large_scale and share is not None:
        findings.at_least(
            "D2", "arcs over last-level cache", share, LARGE, "bytes of the matrix over bytes of the cache"
        )
    else:
        findings.absent("D2", "arcs over last-level cache", "no claim about large graphs rests on this size", share)


def _ids(findings: Findings, graph: WebGraph) -> bool:
    """Whether node ids are in range; other checks cannot count them if not."""
    ends = [int(end) for side in (graph.source, graph.target) for end in (side.min(), side.max())]
    lowest, highest = min(ends), max(ends)
    findings.judge(
        "D3",
        "ids of arcs",
        f"{lowest} to {highest}",
        f"0 to {graph.nodes - 1}",
        lowest >= 0 and highest < graph.nodes,
        otherwise="fail",
    )
    return findings.findings[-1].outcome == "pass"


def _nodes(findings: Findings, graph: WebGraph, into: np.ndarray, out: np.ndarray) -> None:
    findings.at_most(
        "D3", "isolated nodes", float(((into == 0) & (out == 0)).mean()), UNUSED, "share of ids without any arc"
    )
    findings.between(
        "D4",
        "dangling nodes",
        float((out == 0).mean()),
        *DANGLING,
        detail="share of nodes without out-arcs, isolated ones included",
    )
    findings.between("D6", "average degree", graph.arcs / graph.nodes, *DEGREE, detail="arcs per node")


def _components(findings: Findings, graph: WebGraph) -> None:
    matrix = csr_array((np.ones(graph.arcs, np.int8), (graph.source, graph.target)), shape=(graph.nodes, graph.nodes))
    for name in ("strong", "weak"):
        largest = np.bincount(connected_components(matrix, connection=name)[1]).max() / graph.nodes
        if name == "strong":
            findings.between("D5", "largest strong component", float(largest), *STRONG, detail="share of nodes")
        else:
            findings.at_least("D5", "largest weak component", float(largest), WEAK, "share of nodes")


def _arcs(findings: Findings, graph: WebGraph, seed: int) -> None:
    findings.at_most(
        "D7",
        "repeated arcs",
        1 - len(np.unique(graph.source * graph.nodes + graph.target)) / graph.arcs,
        TWICE,
        "share of arcs",
    )
    findings.at_most("D7", "self loops", float((graph.source == graph.target).mean()), TWICE, "share of arcs")
    findings.absent("D7", "rows shared by train and test", "nothing is trained")
    linked = np.union1d(graph.source, graph.target)
    findings.at_most(
        "D8", "largest host", float(np.bincount(graph.host[linked]).max() / len(linked)), HOST, "share of linked nodes"
    )
    inside = float((graph.host[graph.source] == graph.host[graph.target]).mean())
    null = np.random.default_rng([seed, 11]).permutation(graph.target)
    by_chance = float((graph.host[graph.source] == graph.host[null]).mean())
    detail = (
        f"share of arcs inside hosts {inside:.3g}, with targets exchanged at random (degrees kept) "
        f"{by_chance:.3g}; what the null has too is no structure"
    )
    findings.at_least("D11", "links inside hosts above the null", inside - by_chance, 0.1, detail)


def _tail(findings: Findings, graph: WebGraph, into: np.ndarray, seed: int) -> None:
    into = into[into > 0]  # in-degrees
    fit = fit_tail(into)
    if fit is None:
        findings.at_least("D9", "heavy tail of in-degrees", 0.0, HEAVIER, "no tail of 50 nodes with 6 or more arcs in")
        return
    findings.at_least(
        "D9",
        "heavy tail of in-degrees",
        against_exponential(into, fit),
        HEAVIER,
        "Vuong's statistic of a power law against an exponential tail",
    )
    generator = np.random.default_rng([seed, 12])
    sample = into if len(into) <= MOST_DEGREES else generator.choice(into, MOST_DEGREES, replace=False)
    fitted = fit_tail(sample) or fit
    share = goodness_of_fit(sample, fitted, seed, REPEATS)
    detail = (
        f"share of {REPEATS} samples of the fitted law that fit worse; exponent {fitted.exponent:.2f} from "
        f"{fitted.smallest} on"
    )
    bound = f"at least {LAW:g}, or a KS distance of at most {NEAR:g}"
    findings.judge(
        "D9",
        "power law of in-degrees",
        share,
        bound,
        share >= LAW or fitted.distance <= NEAR,
        f"{detail}; KS distance {fitted.distance:.4f}",
    )
    detail = (
        f"a generated marginal against the published one; KS distance to the fitted law {fit.distance:.4f}, "
        f"from {fit.smallest} arcs on"
    )
    findings.between("D12", "exponent of in-degrees", fit.exponent, *EXPONENT, detail=detail)


def _order(findings: Findings, graph: WebGraph, into: np.ndarray) -> None:
    tied = rank_correlation(np.arange(graph.nodes), into)
    findings.between(
        "D10",
        "order of ids",
        tied,
        -ORDER,
        ORDER,
        detail="Spearman's correlation of id and in-degree: are the nodes sorted?",
    )
