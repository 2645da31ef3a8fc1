"""The nodes of an allocation as they answered: which of them a case takes, and what stands in its record about them."""

from __future__ import annotations

import hashlib
import socket
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from scaleproof.core.record_schema import Evidence, PlacedNode, Placement, Record
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
    """Where one launch stands: its nodes and the ranks on each, the interface that they bind and each node's address on
    it."""

    allocation: Allocation
    nodes: tuple[Node, ...]
    ranks: tuple[tuple[int, ...], ...]
    interface: str
    machine: str

    @property
    def streamed(self) -> bool:
        """Whether files are sent: a launch does it for all of its nodes or for none."""
        return not all(node.answer.shared for node in self.nodes)

    @property
    def addresses(self) -> list[str]:
        """Of each node."""
        return [node.answer.interfaces[netdev(self.interface)] for node in self.nodes]

    @property
    def evidence(self) -> Evidence:
        """Nodes that are one machine in truth emulate a network."""
        return "measured" if len({node.answer.boot for node in self.nodes}) == len(self.nodes) else "emulated"

    @property
    def cores(self) -> int:
        """Of all machines below the nodes."""
        return sum(map(len, self._cores().values()))

    def oversubscribed(self, threads: int) -> bool:
        """Whether some machine has more ranks times threads than cores."""
        wanted, cores = dict[str, int](), self._cores()
        for node, ranks in zip(self.nodes, self.ranks, strict=True):
            wanted[node.answer.boot] = wanted.get(node.answer.boot, 0) + len(ranks) * threads
        return any(wanted[boot] > len(cores[boot]) for boot in wanted)

    def _cores(self) -> dict[str, set[int]]:
        """By boot: nodes of one boot share a machine's."""
        cores = dict[str, set[int]]()
        for node in self.nodes:
            cores[node.answer.boot] = cores.get(node.answer.boot, set()) | set(node.answer.cores)
        return cores

    def as_record(self) -> Placement:
        """For the record."""
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
        given = self.allocation
        return Placement(
            launcher=given.launcher,
            kind=given.kind,
            cluster=given.cluster,
            job=given.job,
            interface=self.interface,
            streamed=self.streamed,
            nodes=nodes,
        )


@dataclass(frozen=True, slots=True)
class AllocatedNodes:
    """All nodes that a run has. `lost`: names of nodes that are gone since; their places stay empty."""

    allocation: Allocation
    nodes: tuple[Node, ...]
    interface: str
    """That of the allocation; loopback in a case stands for it."""
    lost: frozenset[str] = field(default=frozenset())

    @property
    def machine(self) -> str:
        """Stands for this many nodes of these kinds on this cluster, so that a job that comes back on others like them
        goes on with its plan."""
        kinds = sorted(node.answer.machine for node in self.nodes)
        return hashlib.sha256("/".join([self.allocation.cluster, *kinds, str(len(kinds))]).encode()).hexdigest()[:12]

    @property
    def words(self) -> str:
        """For people."""
        given, count = self.allocation, len(self.nodes)
        job = f"Slurm job {given.job.id} on {given.cluster}" if given.kind == "slurm" and given.job else "a host list"
        boots, shared = len({node.answer.boot for node in self.nodes}), all(node.answer.shared for node in self.nodes)
        machines = "" if boots == count else f" (of {boots} machine{'s' if boots > 1 else ''})"
        files = "a shared folder" if shared else "files sent over the network"
        return f"{count} nodes{machines} of {job}, by {given.launcher} over {self.interface}, {files}: {', '.join(node.name for node in self.nodes)}"

    def without(self, name: str) -> AllocatedNodes:
        """After a node was lost."""
        return replace(self, lost=self.lost | {name})

    @property
    def loss(self) -> str:
        """What it has lost, for people."""
        return f"node_lost: {', '.join(sorted(self.lost))} of {len(self.nodes)} nodes"

    def waits(self, case: AnyCase) -> bool:
        """Whether a case would stand here, were no node lost."""
        return (
            bool(self.lost)
            and case.plugin("fabric").evidence == "measured"
            and isinstance(self.placement_for(case), Obstacle)
            and isinstance(replace(self, lost=frozenset()).placement_for(case), NodePlacement)
        )

    def placement_for(self, case: AnyCase) -> NodePlacement | Obstacle:
        """Where a case stands, or why it cannot and what to do. Always as many nodes as it has ranks, or all, or one
        for memory that ends there: with another number its launches would not be alike."""
        on_one = case.transport is not None and case.plugin("transport").one_node
        count = 1 if on_one else min(len(self.nodes), case.ranks)
        living = [node for node in self.nodes if node.name not in self.lost]
        if len(living) < count:
            return Obstacle(
                f"{case.ranks} ranks stand on {count} nodes, and {', '.join(sorted(self.lost))} of {len(self.nodes)} is lost",
                "start again with all nodes",
            )
        ranks = [ranks_of(node, count, case.ranks) for node in range(count)]
        most = max(map(len, ranks))
        able = [node for node in living if node.slots >= most]
        if len(able) < count:
            slots = ", ".join(f"{node.name}:{node.slots}" for node in living)
            return Obstacle(
                f"{case.ranks} ranks are {most} a node on {count} nodes, more than slots there are ({slots})",
                "ask for more nodes, or more tasks a node",
            )
        interface = self.interface if case.interface == LOOPBACK and count > 1 else case.interface
        if without := [node.name for node in able[:count] if netdev(interface) not in node.answer.interfaces]:
            return Obstacle(
                f"node {', '.join(without)} has no interface {interface!r} with an IPv4 address",
                "name another one with `interface:` or --interface",
            )
        return NodePlacement(self.allocation, tuple(able[:count]), tuple(map(tuple, ranks)), interface, self.machine)


def placement_for(case: AnyCase, allocated: AllocatedNodes | None) -> NodePlacement | None:
    """Where a case that may run stands on an allocation; None: it has no use for one."""
    found = (
        allocated.placement_for(case)
        if allocated is not None and case.plugin("fabric").evidence == "measured"
        else None
    )
    return found if isinstance(found, NodePlacement) else None


def machine_of(case: AnyCase, allocated: AllocatedNodes | None) -> str:
    """Which machine a case's records name: the allocation's nodes where it stands on them, else this one."""
    return allocated.machine if allocated is not None and case.plugin("fabric").evidence == "measured" else machine_id()


def fits(case: AnyCase, allocated: AllocatedNodes | None) -> bool:
    """Whether there is room for a case."""
    return (
        allocated is None
        or case.plugin("fabric").evidence != "measured"
        or isinstance(allocated.placement_for(case), NodePlacement)
    )


def lost_node(record: Record) -> str:
    """The node whose loss ended a launch; empty where none did."""
    failure = record.failure
    return failure.node if failure is not None and failure.code == "node_lost" else ""


def taken_away(record: Record, allocated: AllocatedNodes | None) -> str:
    """Why no launch can follow one that failed: Slurm is ending the job, so that its nodes are gone. Empty where that
    is not so."""
    job = allocated.allocation.job if allocated is not None else None
    state = slurm.ending_state(job.id) if job is not None and record.failure is not None else ""
    return f"Slurm ends job {job.id} ({state})" if job is not None and state else ""


def node_fields(placement: NodePlacement | None) -> dict[str, Any]:
    """The fields of a launch's specification that say where it runs."""
    return {"nodes": len(placement.nodes), "interface": placement.interface} if placement is not None else {}


def discover_nodes(allocation: Allocation, results: Path) -> AllocatedNodes:
    """Call the roll; SpecError when a node does not answer, or they have no interface in common."""
    answers = discover(allocation, results)
    nodes = [
        Node(host.name, host.slots or len(answer.cores), host.switch, answer)
        for host, answer in zip(allocation.hosts, answers, strict=True)
    ]
    return AllocatedNodes(allocation, tuple(nodes), _interface(allocation.interface, nodes))


def _interface(asked: str, nodes: Sequence[Node]) -> str:
    own = {node.name: netdev(asked) if asked else node.answer.own for node in nodes}
    chosen = next(iter(own.values()))
    if different := {name: found for name, found in own.items() if found != chosen or not found}:
        told = ", ".join(f"{name}: {found or 'none'}" for name, found in (own if chosen else different).items())
        raise SpecError(
            f"nodes have the address of their name on different interfaces or none ({told}); name one that all have with --interface"
        )
    for node in nodes:
        if chosen not in node.answer.interfaces:
            known = ", ".join(f"{name} {address}" for name, address in node.answer.interfaces.items())
            raise SpecError(f"node {node.name} has no interface {chosen!r} with an IPv4 address; it has {known}")
    addresses = [node.answer.interfaces[chosen] for node in nodes]
    shared = [node.answer.boot for node in nodes if addresses.count(node.answer.interfaces[chosen]) > 1]
    if len(set(shared)) > 1:
        raise SpecError(
            f"{addresses[0]} is the address of several machines on {chosen!r}; name an interface by which they reach each other with --interface"
        )
    return chosen


def address_towards(address: str) -> str:
    """The own address on the way to another; no packet is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((address, 9))
        return str(probe.getsockname()[0])
