"""Synthetic web graphs: hosts of different sizes, power-law in-degrees, a bow tie, pages without links; and the
modifications of graphs that the paper warns of."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from scaleproof.workloads.inputs.graphs import WebGraph

EXPONENT = 2.1
"""Of the in-degrees, the value that studies of the web usually report (Manning, Raghavan, Schuetze, Introduction to
Information Retrieval, section 19.2.1)."""
DANGLING = 0.15
"""Share of pages without links; docs/inputs.md explains the value."""
INSIDE = 0.75
"""Share of the links that stay in their host, if it has a page that they may point to. Our own choice."""
IN, CORE, OUT = 0, 1, 2
"""Parts of the bow tie: pages that lead to the core, the core, and pages reached from the core. No link goes back to an
earlier part."""
SHARES = (0.2, 0.52, 0.28)
HOST_EXPONENT = 0.8
"""Host k has a size proportional to k to the minus this: the largest of 200 has a tenth of all pages."""
LARGEST_HUB = 0.02
"""Largest expected share of all links that point to one page."""
REPAIRS = 20
"""Rounds in which a shuffle exchanges the targets of loops and repeated arcs again."""
KINDS = ("web", "no_dangling", "one_host", "padded", "shuffled")


def make(kind: str, nodes: int, hosts: int, degree: float, isolated: float, seed: int) -> WebGraph:
    """The graph of an arm: `nodes` linked pages; `padded` adds isolated ones until they are the share `isolated` of
    all."""
    if kind not in KINDS:
        raise ValueError(f"no graph is called {kind!r}; there are: {', '.join(KINDS)}")
    dangling = 0.0 if kind in ("no_dangling", "one_host") else DANGLING
    graph = web(nodes, 1 if kind == "one_host" else hosts, degree, dangling, seed)
    if kind == "padded":
        return padded(graph, isolated, seed)
    return shuffled(graph, seed) if kind == "shuffled" else graph


def expected_nodes(kind: str, nodes: int, isolated: float) -> int:
    """Number of ids of an arm's graph."""
    return round(nodes / (1 - isolated)) if kind == "padded" else nodes


def web(nodes: int, hosts: int, degree: float, dangling: float, seed: int) -> WebGraph:
    """A graph without repeated arcs and loops. Pages of a host are neighbours, as in a crawl sorted by address.
    `degree`: arcs per node, before repeated arcs and loops are removed and before unlinked pages get an arc."""
    generator = np.random.default_rng([seed, 1])
    host = _hosts(nodes, hosts)
    side = generator.choice(3, nodes, p=SHARES)
    silent = (side == OUT) & (generator.random(nodes) < dangling / SHARES[OUT])
    weight = _attraction(generator, nodes)
    links = generator.geometric(min(1.0, (1 - silent.mean()) / degree), nodes)
    links[silent] = 0
    sources, targets = [], []
    for start in (IN, CORE, OUT):
        source = np.repeat(np.flatnonzero(side == start), links[side == start])
        sources.append(source)
        targets.append(_targets(generator, source, host, np.where(side >= start, weight, 0)))
    lost = np.bincount(np.concatenate(targets), minlength=nodes) == 0
    for pages, finders in ((lost & (side == IN), side == IN), (lost & (side != IN), side <= CORE)):
        targets.append(np.flatnonzero(pages))
        sources.append(_next(np.flatnonzero(finders), targets[-1]))
    source, target = _distinct(nodes, np.concatenate(sources), np.concatenate(targets))
    mute = np.flatnonzero(~silent & (np.bincount(source, minlength=nodes) == 0))  # all their links were loops
    source, target = np.concatenate([source, mute]), np.concatenate([target, _next(np.flatnonzero(side == OUT), mute)])
    recipe = (
        f"synthetic web graph: {nodes} nodes, {hosts} hosts, degree {degree:g}, dangling {dangling:g}, "
        f"in-degree exponent {EXPONENT}, seed {seed}"
    )
    name = "web" if dangling else "no dangling nodes"
    return WebGraph(f"synthetic {name}{'' if hosts > 1 else ', one host'}", nodes, source, target, host, recipe)


def padded(graph: WebGraph, isolated: float, seed: int) -> WebGraph:
    """The same arcs in a larger space of ids. Unused ids are at random positions, each with the host of the previous
    page."""
    total = round(graph.nodes / (1 - isolated))
    ids = np.sort(np.random.default_rng([seed, 2]).permutation(total)[: graph.nodes])
    host = graph.host[np.maximum(np.searchsorted(ids, np.arange(total), side="right") - 1, 0)]
    recipe = f"{graph.recipe}; padded with isolated nodes to a share of {isolated:g}"
    return WebGraph(f"{graph.name}, padded", total, ids[graph.source], ids[graph.target], host, recipe)


def shuffled(graph: WebGraph, seed: int) -> WebGraph:
    """The null graph: targets are exchanged between arcs at random, which keeps only the out-degree and in-degree of
    every page."""
    generator = np.random.default_rng([seed, 3])
    target = generator.permutation(graph.target)
    for _ in range(REPAIRS):
        wrong = _wrong(graph.nodes, graph.source, target)
        if len(wrong) == 0:
            break
        others = np.setdiff1d(generator.integers(len(target), size=len(wrong)), wrong)
        wrong = generator.permutation(wrong)[: len(others)]
        target[wrong], target[others] = target[others], target[wrong]
    return replace(
        graph,
        name=f"{graph.name}, shuffled",
        target=target,
        recipe=f"{graph.recipe}; targets exchanged between arcs at random",
    )


def _wrong(nodes: int, source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Arcs that are loops or repeat another one."""
    code = source * nodes + target
    order = np.argsort(code, kind="stable")
    again = np.zeros(len(code), bool)
    again[order[1:]] = np.diff(code[order]) == 0
    return np.flatnonzero(again | (source == target))


def _hosts(nodes: int, hosts: int) -> np.ndarray:
    size = np.arange(1, hosts + 1) ** -HOST_EXPONENT
    return np.searchsorted(np.cumsum(size / size.sum())[:-1], (np.arange(nodes) + 0.5) / nodes)


def _attraction(generator: np.random.Generator, nodes: int) -> np.ndarray:
    """Pareto weights, limited to the expected maximum of a sample of this size and to the largest hub."""
    weight = np.minimum((1 - generator.random(nodes)) ** (-1 / (EXPONENT - 1)), nodes ** (1 / (EXPONENT - 1)))
    return np.minimum(weight, LARGEST_HUB * weight.sum())


def _targets(generator: np.random.Generator, source: np.ndarray, host: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """A target page for each arc, drawn by weight from the source's host or from all pages."""
    total = np.concatenate([[0.0], np.cumsum(weight)])
    first = np.searchsorted(host, np.arange(host[-1] + 2))
    low, high = total[first[host[source]]], total[first[host[source] + 1]]
    inside = (generator.random(len(source)) < INSIDE) & (high > low)
    low, high = np.where(inside, low, 0.0), np.where(inside, high, total[-1])
    return np.minimum(
        np.searchsorted(total, low + generator.random(len(source)) * (high - low), side="right") - 1, len(host) - 1
    )


def _next(finders: np.ndarray, pages: np.ndarray) -> np.ndarray:
    """For each page the next one of `finders`: a crawler has found every page by a link, mostly from its own host."""
    return finders[np.searchsorted(finders, pages, side="right") % len(finders)]


def _distinct(nodes: int, source: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    code = np.unique(source * nodes + target)
    source, target = np.divmod(code, nodes)
    proper = source != target
    return source[proper], target[proper]
