"""Cheapest trees: arborescences by Chu, Liu and Edmonds (1965, 1967), undirected spanning trees by Kruskal (1956)."""

from __future__ import annotations

from collections.abc import Sequence

Edge = tuple[int, int]


def cheapest_arborescence(count: int, root: int, edges: Sequence[Edge], costs: Sequence[float]) -> list[int]:
    """Numbers of the edges of the cheapest arborescence from `root` over vertices 0 to count - 1. `edges`: (from, to).
    ValueError where an edge leads nowhere to a vertex."""
    return _arborescence(
        count, root, [(one, to, cost, n) for n, ((one, to), cost) in enumerate(zip(edges, costs, strict=True))]
    )


_Edge = tuple[int, int, float, int]


def _arborescence(count: int, root: int, edges: Sequence[_Edge]) -> list[int]:
    into: list[_Edge | None] = [None] * count
    for edge in edges:
        best = into[edge[1]]
        if edge[1] != root and edge[0] != edge[1] and (best is None or edge[2] < best[2]):
            into[edge[1]] = edge
    if missing := [vertex for vertex in range(count) if vertex != root and into[vertex] is None]:
        raise ValueError(f"no edge leads to vertex {missing[0]}")
    part, parts, cycles = _contracted(count, root, into)
    if not cycles:
        return [edge[3] for edge in into if edge is not None]
    chosen = {edge[3]: edge for edge in edges}
    inner = []
    for one, to, cost, number in edges:
        if part[one] != part[to]:
            cheapest = into[to]
            saved = cheapest[2] if cheapest is not None and part[to] in cycles else 0.0
            inner.append((part[one], part[to], cost - saved, number))
    found = _arborescence(parts, part[root], inner)
    entered = {chosen[number][1] for number in found}
    kept = [into[vertex] for cycle in cycles.values() for vertex in cycle if vertex not in entered]
    return found + [edge[3] for edge in kept if edge is not None]


def _contracted(count: int, root: int, into: Sequence[_Edge | None]) -> tuple[list[int], int, dict[int, list[int]]]:
    """The part of each vertex where every cycle of the cheapest edges is one; how many parts; and the cycles by
    part."""
    part, seen, cycles, parts = [-1] * count, [-1] * count, dict[int, list[int]](), 0
    for start in range(count):
        vertex = start
        while seen[vertex] == -1 and vertex != root:
            seen[vertex] = start
            edge = into[vertex]
            assert edge is not None
            vertex = edge[0]
        if vertex != root and seen[vertex] == start and part[vertex] == -1:
            cycle, at = list[int](), vertex
            while not cycle or at != vertex:
                cycle.append(at)
                part[at] = parts
                edge = into[at]
                assert edge is not None
                at = edge[0]
            cycles[parts] = cycle
            parts += 1
    for vertex in range(count):
        if part[vertex] == -1:
            part[vertex] = parts
            parts += 1
    return part, parts, cycles


def cheapest_tree(count: int, edges: Sequence[Edge], costs: Sequence[float]) -> list[int]:
    """Numbers of the edges of the cheapest undirected spanning tree. ValueError where there is none."""
    part, chosen = list(range(count)), list[int]()

    def top(vertex: int) -> int:
        while part[vertex] != vertex:
            part[vertex] = part[part[vertex]]
            vertex = part[vertex]
        return vertex

    for number in sorted(range(len(edges)), key=lambda each: costs[each]):
        one, other = map(top, edges[number])
        if one != other:
            part[one] = other
            chosen.append(number)
    if len(chosen) < count - 1:
        raise ValueError("no tree spans all vertices")
    return chosen
