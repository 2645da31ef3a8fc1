"""The bottleneck of a step: the same step with half of the time of each resource."""

from __future__ import annotations

from dataclasses import replace

from scaleproof.simulate.cost_model import MessageCosts
from scaleproof.simulate.nccl.device_calls import devices_of
from scaleproof.spec.case import TrainCase
from scaleproof.spec.cluster import Cluster, Link, node_name
from scaleproof.workloads.profile import LayerTimes, Profile, Spread

RESOURCES = {
    "compute": "a node's computing",
    "link": "the rate of the links",
    "latency": "what a message costs however small it is, and what a call takes beside its messages",
    "transport": "software: the bytes that it copies and reduces, and the cores that messages take of servers",
    "server": "the servers: their links, their sums, and the cores that messages take of them",
    "stragglers": "what the slowest rank computes longer than usual",
}
"""Possible bottlenecks of a step, in the words that `scaleproof predict` prints."""

Changed = tuple[TrainCase, Profile, Cluster, MessageCosts]


def halved(case: TrainCase, profile: Profile, cluster: Cluster, costs: MessageCosts) -> dict[str, Changed]:
    """For each resource, the same step with half the time of that resource. If only some nodes are servers, `server` is
    the links of those nodes, the servers' sums and the cores that messages take; `link` is the links of the others. Of
    calls between GPUs, `link` is all time per byte: NVLinks, network and what protocols leave of them."""
    if devices_of(case, cluster) is not None:
        return {
            "compute": (case, _faster(profile), cluster, costs),
            "link": (case, profile, cluster, costs.times(beta=0.5)),
            "latency": (case, profile, cluster, costs.times(alpha=0.5)),
        }
    count = case.value("strategy.servers", 0)
    servers = {node_name(rank * case.nodes // case.ranks) for rank in range(count)} if count < case.ranks else set()
    at_servers = 1.0 if servers else 0.5
    other = replace(
        cluster, links=tuple(_wider(link) if servers.isdisjoint(link.ends) else link for link in cluster.links)
    )
    near = replace(cluster, links=tuple(replace(link, delay_ms=link.delay_ms / 2) for link in cluster.links))
    changed = {
        "compute": (case, _faster(profile), cluster, costs),
        "link": (case, profile, other, costs),
        "latency": (case, profile, near, costs.times(alpha=0.5, call=0.5)),
        "transport": (case, profile, cluster, costs.times(beta=0.5, gamma=at_servers, cores=at_servers)),
    }
    if servers:
        served = replace(
            cluster, links=tuple(link if servers.isdisjoint(link.ends) else _wider(link) for link in cluster.links)
        )
        changed["server"] = (case, profile, served, costs.times(gamma=0.5, cores=0.5))
    return changed


def _wider(link: Link) -> Link:
    return replace(link, mbit=link.mbit and 2 * link.mbit)


def _faster(profile: Profile) -> Profile:
    def half(time: Spread) -> Spread:
        return Spread(median=time.median / 2)

    layers = [
        LayerTimes(
            name=layer.name,
            mac=layer.mac,
            forward_s=half(layer.forward_s),
            backward_s=half(layer.backward_s),
            weight_s=half(layer.weight_s),
        )
        for layer in profile.layers
    ]
    return profile.model_copy(update={"layers": tuple(layers), "update_s": half(profile.update_s)})
