"""The nodes of an allocation that answered discovery: on which of them a case runs, and what its record says about
them."""

from __future__ import annotations

import hashlib
import socket
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from scaleproof.core.node_schema import PlacedNode, Placement
from scaleproof.core.record_schema import Evidence, Record
from scaleproof.fabric.verbs import netdev
from scaleproof.launch.launchers.launcher_contract import ranks_of
from scaleproof.launch.nodes import slurm
from scaleproof.launch.nodes.discovery import NodeAnswer, discover
from scaleproof.launch.nodes.requested_nodes import Allocation
from scaleproof.launch.obstacle import Obstacle
from scaleproof.record.digest import machine_id
from scaleproof.spec.case import AnyCase
from scaleproof.spec.errors import SpecError

LOOPBACK, HOST = "lo", "host"


@dataclass(frozen=True, slots=True)
class Node:
    """One node that answered."""

    name: str
    slots: int
    switch: str
    answer: NodeAnswer


@dataclass(frozen=True, slots=True)
class NodePlacement:
    """Where one launch runs: its nodes and the ranks on each, and the interface that they bind."""

    allocation: Allocation
    nodes: tuple[Node, ...]
    ranks: tuple[tuple[int, ...], ...]
    interface: str
    machine: str

    @property
    def streamed(self) -> bool:
        """Whether files are sent over the network: for all nodes of a launch, or for none of them."""
        return not all(node.answer.shared for node in self.nodes)

    @property
    def addresses(self) -> list[str]:
        """Each node's address on the interface."""
        return [node.answer.interfaces[netdev(self.interface)] for node in self.nodes]

    @property
    def evidence(self) -> Evidence:
        """`emulated` where several nodes are one machine."""
        return "measured" if len({node.answer.boot for node in self.nodes}) == len(self.nodes) else "emulated"

    @property
    def cores(self) -> int:
        """Number of cores of all machines that the nodes are on."""
        return sum(map(len, self._cores().values()))

    def oversubscribed(self, threads: int) -> bool:
        """Whether a machine has more ranks times threads than cores."""
        threads_on, cores = dict[str, int](), self._cores()
        for node, ranks in zip(self.nodes, self.ranks, strict=True):
            threads_on[node.answer.boot] = threads_on.get(node.answer.boot, 0) + len(ranks) * threads
        return any(threads_on[boot] > len(cores[boot]) for boot in threads_on)

    def _cores(self) -> dict[str, set[int]]:
        """Cores by boot id: nodes with the same boot id share the cores of one machine."""
        cores = dict[str, set[int]]()
        for node in self.nodes:
            cores[node.answer.boot] = cores.get(node.answer.boot, set()) | set(node.answer.cores)
        return cores

    def as_record(self) -> Placement:
        """The record's form of this placement."""
        nodes = [
            PlacedNode(
                name=node.name,
                address=address,
                switch=node.switch,
                machine=node.answer.machine,
                boot=node.answer.boot,
                cores=len(node.answer.cores),
                ranks=list(ranks),
            )
            for node, address, ranks in zip(self.nodes, self.addresses, self.ranks, strict=True)
        ]
        allocation = self.allocation
        return Placement(
            launcher=allocation.launcher,
            kind=allocation.kind,
            cluster=allocation.cluster,
            job=allocation.job,
            interface=self.interface,
            streamed=self.streamed,
            nodes=nodes,
        )


@dataclass(frozen=True, slots=True)
class AllocatedNodes:
    """All nodes of a run. `lost`: names of nodes that were lost since; no other nodes replace them."""

    allocation: Allocation
    nodes: tuple[Node, ...]
    interface: str
    """The interface of the allocation, used for cases whose interface is loopback."""
    lost: frozenset[str] = field(default=frozenset())

    @property
    def machine(self) -> str:
        """An id of the cluster and the number and kinds of nodes, so that a job that is started again on other nodes of
        the same kinds continues its plan."""
        kinds = sorted(node.answer.machine for node in self.nodes)
        return hashlib.sha256("/".join([self.allocation.cluster, *kinds, str(len(kinds))]).encode()).hexdigest()[:12]

    @property
    def summary(self) -> str:
        """One line for people."""
        allocation, count = self.allocation, len(self.nodes)
        in_job = allocation.kind == "slurm" and allocation.job is not None
        job = f"Slurm job {allocation.job.id} on {allocation.cluster}" if in_job and allocation.job else "a host list"
        boots, shared = len({node.answer.boot for node in self.nodes}), all(node.answer.shared for node in self.nodes)
        machines = "" if boots == count else f" (of {boots} machine{'s' if boots > 1 else ''})"
        files = "a shared folder" if shared else "files sent over the network"
        names = ", ".join(node.name for node in self.nodes)
        return f"{count} nodes{machines} of {job}, by {allocation.launcher} over {self.interface}, {files}: {names}"

    def without(self, name: str) -> AllocatedNodes:
        """These nodes after the loss of the named one."""
        return replace(self, lost=self.lost | {name})

    @property
    def loss(self) -> str:
        """Which nodes are lost, for people."""
        return f"node_lost: {', '.join(sorted(self.lost))} of {len(self.nodes)} nodes"

    def waits(self, case: AnyCase) -> bool:
        """Whether a case has to wait because a node is lost: with all nodes there would be room for it."""
        return (
            bool(self.lost)
            and _on_nodes(case)
            and isinstance(self.placement_for(case), Obstacle)
            and isinstance(replace(self, lost=frozenset()).placement_for(case), NodePlacement)
        )

    def placement_for(self, case: AnyCase) -> NodePlacement | Obstacle:
        """Where a case runs, or why it cannot. All launches of a case get the same number of nodes: as many as it has
        ranks, at most all; one for a transport that works inside one machine only."""
        on_one = case.transport is not None and case.plugin("transport").one_node
        count = 1 if on_one else min(len(self.nodes), case.ranks)
        living = [node for node in self.nodes if node.name not in self.lost]
        if len(living) < count:
            return Obstacle(
                f"{case.ranks} ranks need {count} nodes, and of {len(self.nodes)} "
                f"{', '.join(sorted(self.lost))} {'is' if len(self.lost) == 1 else 'are'} lost",
                "start again with all nodes",
                "nodes",
            )
        ranks = [ranks_of(node, count, case.ranks) for node in range(count)]
        most = max(map(len, ranks))
        able = [node for node in living if node.slots >= most]
        if len(able) < count:
            slots = ", ".join(f"{node.name}:{node.slots}" for node in living)
            return Obstacle(
                f"{case.ranks} ranks on {count} nodes are {most} per node, more than the nodes have slots ({slots})",
                "request more nodes, or more tasks per node",
                "slots",
            )
        interface = self.interface if case.interface == LOOPBACK and count > 1 else case.interface
        if without := [node.name for node in able[:count] if netdev(interface) not in node.answer.interfaces]:
            return Obstacle(
                f"node {', '.join(without)} has no interface {interface!r} with an IPv4 address",
                "name another one with `interface:` or --interface",
                "interface",
            )
        return NodePlacement(self.allocation, tuple(able[:count]), tuple(map(tuple, ranks)), interface, self.machine)


def placement_for(case: AnyCase, allocated: AllocatedNodes | None) -> NodePlacement | None:
    """Where a case runs on an allocation; None: it does not run on one."""
    placement = allocated.placement_for(case) if allocated is not None and _on_nodes(case) else None
    return placement if isinstance(placement, NodePlacement) else None


def machine_of(case: AnyCase, allocated: AllocatedNodes | None) -> str:
    """The machine id in a case's records: the allocation's where the case runs on its nodes, else this machine's."""
    return allocated.machine if allocated is not None and _on_nodes(case) else machine_id()


def has_room(case: AnyCase, allocated: AllocatedNodes | None) -> bool:
    """Whether the remaining nodes have room for a case."""
    return allocated is None or not _on_nodes(case) or isinstance(allocated.placement_for(case), NodePlacement)


def _on_nodes(case: AnyCase) -> bool:
    """Whether a case runs on the nodes of an allocation where there is one: its fabric makes none."""
    return case.plugin("fabric").evidence == "measured"


def lost_node(record: Record) -> str:
    """The node whose loss ended a launch; empty: no node was lost."""
    failure = record.failure
    return failure.node if failure is not None and failure.code == "node_lost" else ""


def taken_away(record: Record, allocated: AllocatedNodes | None) -> str:
    """Why no launch can follow after a failed one: Slurm is ending the job. Empty where it is not."""
    job = allocated.allocation.job if allocated is not None else None
    state = slurm.ending_state(job.id) if job is not None and record.failure is not None else ""
    return f"Slurm ends job {job.id} ({state})" if job is not None and state else ""


def node_fields(placement: NodePlacement | None) -> dict[str, Any]:
    """The fields of a launch's specification that say where it runs."""
    return {"nodes": len(placement.nodes), "interface": placement.interface} if placement is not None else {}


def discover_nodes(allocation: Allocation, results: Path) -> AllocatedNodes:
    """Request the facts of every node; SpecError when one does not answer, or they have no interface in common."""
    answers = discover(allocation, results)
    nodes = [
        Node(host.name, host.slots or len(answer.cores), host.switch, answer)
        for host, answer in zip(allocation.hosts, answers, strict=True)
    ]
    return AllocatedNodes(allocation, tuple(nodes), _interface(allocation.interface, nodes))


def _interface(option: str, nodes: Sequence[Node]) -> str:
    own = {node.name: netdev(option) if option else node.answer.own for node in nodes}
    chosen = next(iter(own.values()))
    different = {name: interface for name, interface in own.items() if interface != chosen or not interface}
    if different:
        listed = own if chosen else different
        interfaces = ", ".join(f"{name}: {interface or 'none'}" for name, interface in listed.items())
        raise SpecError(
            f"nodes have the address of their name on different interfaces or none ({interfaces}); "
            "name one that all have with --interface"
        )
    for node in nodes:
        if chosen not in node.answer.interfaces:
            interfaces = ", ".join(f"{name} {address}" for name, address in node.answer.interfaces.items())
            raise SpecError(f"node {node.name} has no interface {chosen!r} with an IPv4 address; it has {interfaces}")
    addresses = [node.answer.interfaces[chosen] for node in nodes]
    shared = [node.answer.boot for node in nodes if addresses.count(node.answer.interfaces[chosen]) > 1]
    if len(set(shared)) > 1:
        raise SpecError(
            f"{addresses[0]} is the address of several machines on {chosen!r}; "
            "name an interface by which they reach each other with --interface"
        )
    return chosen


def address_towards(address: str) -> str:
    """This machine's address on the route to another address; no packet is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((address, 9))
        return str(probe.getsockname()[0])
