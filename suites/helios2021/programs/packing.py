"""Which nodes jobs had, from when they ran: a log says how many nodes a job had, and not which. Jobs of one virtual
cluster (VC) are packed onto its fullest nodes (the artifact's placer)."""

from __future__ import annotations

import numpy as np

from scaleproof.simulate.compiled import allocating, compiled


@compiled
def fullest(free: np.ndarray, need: int, taken: np.ndarray) -> int:
    """The node with fewest free GPUs that has room, but for those that are taken."""
    found = -1
    for node in range(len(free)):
        if free[node] >= need and not taken[node] and (found < 0 or free[node] < free[found]):
            found = node
    return found


@allocating
def pack(
    order: np.ndarray, moments: np.ndarray, gpus: np.ndarray, parts: np.ndarray, nodes: int, per_node: int
) -> tuple[np.ndarray, np.ndarray]:
    """Begin and end of each time for which a node has jobs (times,). `order` (events,): job + 1 where it begins, and
    -(job + 1) where it ends, at `moments`; `parts` (jobs,): the nodes of a job, over which its GPUs are even."""
    free, taken = np.full(nodes, per_node, np.int64), np.zeros(nodes, np.bool_)
    offset = np.concatenate((np.zeros(1, np.int64), np.cumsum(parts)))
    at = np.zeros(offset[-1], np.int64)
    busy_since, begins, ends = np.zeros(nodes), np.empty(offset[-1]), np.empty(offset[-1])
    count = 0
    for event in range(len(order)):
        job = abs(order[event]) - 1
        for part in range(parts[job]):
            share = gpus[job] // parts[job] + (part < gpus[job] % parts[job])
            place = offset[job] + part
            if order[event] > 0:
                node = fullest(free, share, taken)
                if free[node] == per_node:
                    busy_since[node] = moments[event]
                at[place] = node
                taken[node] = True
                free[node] -= share
            else:
                node = at[place]
                free[node] += share
                if free[node] == per_node:
                    begins[count], ends[count] = busy_since[node], moments[event]
                    count += 1
        for place in range(offset[job], offset[job + 1]):
            taken[at[place]] = False
    return begins[:count], ends[:count]


def busy_times(
    begins: np.ndarray, ends: np.ndarray, gpus: np.ndarray, nodes: np.ndarray, vc: np.ndarray, per_node: int
) -> tuple[np.ndarray, np.ndarray]:
    """Begin and end of each time for which a node has jobs (times,), of jobs that ran from `begins` to `ends`, s, on so
    many `gpus` of so many `nodes` of a `vc` (jobs,). A node is one more wherever the packing finds no room."""
    found = [(np.empty(0), np.empty(0))]
    for each in np.unique(vc):
        mine = np.flatnonzero((vc == each) & (ends > begins))
        parts = np.clip(nodes[mine], -(-gpus[mine] // per_node), gpus[mine])
        numbers = np.arange(1, len(mine) + 1)
        moments = np.concatenate([ends[mine], begins[mine]])
        order = np.argsort(moments, kind="stable")  # what ends at a moment is free at it
        most = int(np.cumsum(np.concatenate([-parts, parts])[order]).max(initial=0))
        signed = np.concatenate([-numbers, numbers])[order]
        found.append(pack(signed, moments[order], gpus[mine], parts, most, per_node))
    return np.concatenate([begin for begin, _ in found]), np.concatenate([end for _, end in found])


def united(keys: np.ndarray, begins: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Times of equal keys that overlap or touch are one (times,)."""
    numbers = np.unique(keys, return_inverse=True)[1]
    order = np.lexsort((begins, numbers))
    numbers, begins, ends = numbers[order], begins[order], ends[order]
    found: list[tuple[float, float]] = []
    before = -1
    for key, begin, end in zip(numbers.tolist(), begins.tolist(), ends.tolist(), strict=True):
        if key == before and begin <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((begin, end))
        before = key
    return np.array([begin for begin, _ in found]), np.array([end for _, end in found])
