"""Gang placement: a job gets all of its GPUs at once or none.

consolidate (the artifact's placer): whole free nodes, and the rest on the fullest node that it fits on. first_fit: the
rest on the first node that it fits on. fungible: any free GPUs of the VC.
"""

from __future__ import annotations

from suite_programs.engine_state import CONSOLIDATE, FREE_SLOT, FUNGIBLE, State

from scaleproof.simulate.compiled import compiled


@compiled
def whole_free(s: State, vc: int) -> int:
    """Nodes of which all GPUs are free."""
    count = 0
    for node in range(s.first_node[vc], s.first_node[vc + 1]):
        count += s.free[node] == s.per_node
    return count


@compiled
def node_for_rest(s: State, vc: int, rest: int, partly: bool) -> int:
    """The node for fewer GPUs than a node has; -1: none. `partly`: whole free nodes are taken by the job itself."""
    found = -1
    for node in range(s.first_node[vc], s.first_node[vc + 1]):
        free = s.free[node]
        if free < rest or (partly and free == s.per_node):
            continue
        if found < 0 or free < s.free[found]:
            found = node
            if s.placement != CONSOLIDATE:
                break
    return found


@compiled
def fits(s: State, vc: int, gpus: int) -> bool:
    """Whether a job of so many GPUs could start now."""
    if s.free_gpus[vc] < gpus:
        return False
    if s.placement == FUNGIBLE:
        return True
    whole, rest = gpus // s.per_node, gpus % s.per_node
    if whole == 0:
        return node_for_rest(s, vc, rest, False) >= 0
    free = whole_free(s, vc)
    if rest == 0 or free < whole:
        return free >= whole
    return free > whole or node_for_rest(s, vc, rest, True) >= 0


@compiled
def add_slot(s: State, job: int, vc: int, node: int, gpus: int) -> None:
    """The job gets GPUs of a node."""
    slot = s.numbers[FREE_SLOT]
    s.numbers[FREE_SLOT] = s.slot_next[slot]
    s.slot_node[slot], s.slot_gpus[slot], s.slot_next[slot] = node, gpus, s.slot[job]
    s.slot[job] = slot
    s.free[node] -= gpus
    s.free_gpus[vc] -= gpus


@compiled
def place(s: State, job: int, vc: int, gpus: int) -> bool:
    """Gives the job its GPUs; False, and nothing is changed, where it does not fit."""
    if not fits(s, vc, gpus):
        return False
    if s.placement == FUNGIBLE:
        missing = gpus
        for node in range(s.first_node[vc], s.first_node[vc + 1]):
            taken = min(missing, s.free[node])
            if taken:
                add_slot(s, job, vc, node, taken)
                missing -= taken
        return True
    whole, rest = gpus // s.per_node, gpus % s.per_node
    for node in range(s.first_node[vc], s.first_node[vc + 1]):
        if whole and s.free[node] == s.per_node:
            add_slot(s, job, vc, node, s.per_node)
            whole -= 1
    if rest:  # after the whole nodes: they are not free any more
        add_slot(s, job, vc, node_for_rest(s, vc, rest, False), rest)
    return True


@compiled
def lend(s: State, job: int, vc: int, sign: int) -> None:
    """Adds the GPUs of a job to the free ones (1), or takes them back (-1); its slots stay."""
    slot = s.slot[job]
    while slot >= 0:
        s.free[s.slot_node[slot]] += sign * s.slot_gpus[slot]
        s.free_gpus[vc] += sign * s.slot_gpus[slot]
        slot = s.slot_next[slot]


@compiled
def drop_slots(s: State, job: int) -> None:
    """The job has no GPUs any more; they were lent before."""
    slot = s.slot[job]
    while slot >= 0:
        following = s.slot_next[slot]
        s.slot_next[slot] = s.numbers[FREE_SLOT]
        s.numbers[FREE_SLOT] = slot
        slot = following
    s.slot[job] = -1
