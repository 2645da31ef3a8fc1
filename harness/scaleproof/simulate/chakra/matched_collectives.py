"""Matches the nodes of a trace's ranks that belong to the same collective."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from scaleproof.simulate.chakra.chakra_files import Collective, NodeType
from scaleproof.simulate.chakra.chakra_trace import OPERATIONS, Node, Trace, in_order
from scaleproof.simulate.collective_schedules import Pattern, grouped, pattern_of
from scaleproof.spec.case import Operation
from scaleproof.spec.errors import SpecError

BARRIER_BYTES = 4
"""A barrier runs as an all-reduce of one value."""


@dataclass(slots=True)
class Shared:
    """One collective of several ranks: the node of each rank in the order of the group, the schedule, and the bytes."""

    nodes: dict[int, Node]
    operation: Operation
    pattern: Pattern
    nbytes: float


class Matching:
    """Matches the n-th collective of a group on one rank with the n-th on all ranks of the group."""

    def __init__(self, trace: Trace, algorithm: str) -> None:
        self._ranks, self._groups, self._algorithm = len(trace.ranks), trace.groups, algorithm
        self._patterns: dict[tuple[str, tuple[int, ...]], Pattern] = {}
        lists: dict[str | None, dict[int, list[Node]]] = {}
        for rank, nodes in enumerate(trace.ranks):
            for node in in_order(nodes):
                if node.type is NodeType.COMM_COLL:
                    lists.setdefault(self._group(node), {}).setdefault(rank, []).append(node)
        self.of: dict[tuple[int, int], Shared] = {}
        """By rank and id of a node."""
        for name, by_rank in lists.items():
            for shared in self._matched(name, by_rank):
                for rank, node in shared.nodes.items():
                    self.of[rank, node.id] = shared

    def _group(self, node: Node) -> str | None:
        return node.group if node.group in self._groups else None

    def _matched(self, name: str | None, by_rank: Mapping[int, list[Node]]) -> list[Shared]:
        members = self._groups[name] if name is not None else tuple(range(self._ranks))
        group = "all ranks" if name is None else f"group {name!r}"
        outside = next((rank for rank in by_rank if rank not in members), None)
        if outside is not None:
            raise SpecError(f"rank {outside} has a collective of {group}, to which it does not belong")
        counts = {rank: len(by_rank.get(rank, ())) for rank in members}
        if len(set(counts.values())) > 1:
            few, many = min(counts, key=lambda rank: counts[rank]), max(counts, key=lambda rank: counts[rank])
            raise SpecError(f"collectives of {group}: rank {few} has {counts[few]}, rank {many} has {counts[many]}")
        return [
            self._shared(group, members, {rank: by_rank[rank][number] for rank in members})
            for number in range(counts[members[0]])
        ]

    def _shared(self, group: str, members: tuple[int, ...], nodes: dict[int, Node]) -> Shared:
        first = nodes[members[0]]
        for rank, node in nodes.items():
            if (node.operation, node.nbytes) != (first.operation, first.nbytes):
                calls = [
                    f"{member_node.operation.name} of {member_node.nbytes} bytes (rank {member})"
                    for member, member_node in ((members[0], first), (rank, node))
                    if member_node.operation is not None
                ]
                raise SpecError(f"a collective of {group} is {' and '.join(calls)} at once")
        assert first.operation is not None
        if first.operation is Collective.BARRIER:
            return Shared(nodes, "all_reduce", self._pattern("all_reduce", members), BARRIER_BYTES)
        if first.operation not in OPERATIONS:
            supported = ", ".join(operation.name for operation in OPERATIONS)
            raise SpecError(
                f"node {first.id} of rank {members[0]}: {first.operation.name} is not simulated; "
                f"{supported} and BARRIER are"
            )
        parts = len(members) if first.operation is Collective.ALL_GATHER else 1
        operation = OPERATIONS[first.operation]
        return Shared(nodes, operation, self._pattern(operation, members), float(first.nbytes * parts))

    def _pattern(self, operation: Operation, members: tuple[int, ...]) -> Pattern:
        if (operation, members) not in self._patterns:
            pattern = pattern_of(self._algorithm, operation, len(members))
            self._patterns[operation, members] = (
                pattern if len(members) == self._ranks else grouped(pattern, (members,), self._ranks)
            )
        return self._patterns[operation, members]
