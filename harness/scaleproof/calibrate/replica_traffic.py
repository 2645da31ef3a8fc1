"""The traffic of a strategy that is a program of each rank: what all its ranks send in all their steps, from a run in
virtual time in which links are all that messages cost."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from scaleproof.simulate.cost_model import FREE
from scaleproof.simulate.link_network import Network
from scaleproof.simulate.virtual_learners import Nothing
from scaleproof.simulate.virtual_training import Passes, VirtualTraining
from scaleproof.spec.case import TrainCase
from scaleproof.spec.cluster import Cluster
from scaleproof.spec.relative_times import relative_times
from scaleproof.workloads.case_network import network_of
from scaleproof.workloads.profile import Profile

ELEMENTS = 50_000
"""About so many parameters are simulated: links are slower by the same factor, so that times stay."""


class Traffic(NamedTuple):
    """Of all steps: bytes and messages of all ranks, for how long the link with the most bytes is busy, and how long
    the run takes, s. Without dilation and shrink."""

    nbytes: float
    messages: float
    link_s: float
    run_s: float


def traffic_of(case: TrainCase, cluster: Cluster, profile: Profile | None) -> Traffic:
    """`profile` None: ranks compute in no time."""
    shrink = max(1.0, network_of(case).parameters / ELEMENTS)
    small = case.model_copy(update={"dilation": 1.0, "shrink": shrink})
    times = relative_times(case)
    seconds = (profile.forward_s, profile.backward_s, profile.update_s.median) if profile else (0.0, 0.0, 0.0)
    passes = Passes(*seconds, lambda rank, step: times[rank] if times else 1.0)
    run = VirtualTraining(small, cluster, FREE, passes, Nothing(small), 0)
    run.run()
    barriers = 2 * case.ranks * (case.ranks - 1).bit_length()
    nbytes, nodes = run.moves.nbytes, [rank * case.nodes // case.ranks for rank in range(case.ranks)]
    network, on_links = Network(cluster, FREE.goodput), defaultdict[int, float](float)
    for (source, destination), moved in nbytes.items():
        for link in network.route(nodes[source], nodes[destination]):
            on_links[link] += moved * shrink
    busy_s = max((moved / float(network.capacities[link]) for link, moved in on_links.items()), default=0.0)
    return Traffic(sum(nbytes.values()) * shrink, run.moves.messages - barriers, busy_s, run.now)
