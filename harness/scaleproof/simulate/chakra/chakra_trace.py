"""A training step in Chakra's form: for every rank a graph of computing, collectives, sends and receives, in a file of
its own."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from pathlib import Path
from typing import Any

from scaleproof.simulate.chakra.chakra_files import (
    VERSION,
    Collective,
    NodeType,
    attributes,
    read_messages,
    set_attribute,
    write_messages,
)
from scaleproof.simulate.chakra.chakra_messages_pb2 import GlobalMetadata
from scaleproof.simulate.chakra.chakra_messages_pb2 import Node as NodeMessage
from scaleproof.spec.case import Operation
from scaleproof.spec.errors import SpecError

GROUPS = "comm_groups.json"
"""File with the members of named groups, in ASTRA-sim's form: {"1": [0, 1], ...}. A collective without a group is one
of all ranks."""
OPERATIONS: dict[Collective, Operation] = {
    Collective.ALL_REDUCE: "all_reduce",
    Collective.ALL_GATHER: "all_gather",
    Collective.REDUCE_SCATTER: "reduce_scatter",
    Collective.REDUCE_SCATTER_BLOCK: "reduce_scatter",
    Collective.BROADCAST: "broadcast",
}
_FILE = re.compile(r"(.+)\.([0-9]+)\.et$")
MICRO = 1e-6
MOST_RANKS = 16_384


@dataclass(frozen=True, slots=True)
class Node:
    """One piece of work of one rank. `after`: ids of nodes that must finish before. `nbytes`: size of a message, or of
    a rank's input to a collective (of an all-gather its part). `peer` and `tag`: of a send or a receive. `group`: of a
    collective; None: all ranks. All other nodes take `seconds` of the rank's only compute stream, in the order of the
    file as far as `after` allows."""

    id: int
    name: str
    type: NodeType
    after: tuple[int, ...] = ()
    seconds: float = 0.0
    flop: int = 0
    nbytes: int = 0
    operation: Collective | None = None
    group: str | None = None
    peer: int = 0
    tag: int = 0

    @property
    def computes(self) -> bool:
        """Whether the node runs on the compute stream."""
        return self.type not in (NodeType.COMM_SEND, NodeType.COMM_RECV, NodeType.COMM_COLL)


@dataclass(frozen=True, slots=True)
class Trace:
    """The nodes of all ranks. `about`: attributes of the metadata."""

    ranks: tuple[tuple[Node, ...], ...]
    groups: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)


def write_trace(folder: Path, prefix: str, trace: Trace) -> list[Path]:
    """Writes `<prefix>.<rank>.et` for every rank, and comm_groups.json if there are groups. The format has whole
    microseconds; running totals are rounded, so that rounding errors do not add up."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for rank, nodes in enumerate(trace.ranks):
        metadata = GlobalMetadata(version=VERSION)
        for name, value in trace.about.items():
            set_attribute(metadata, name, "int64" if isinstance(value, int) else "string", value)
        paths.append(folder / f"{prefix}.{rank}.et")
        write_messages(paths[-1], metadata, _encoded(nodes))
    if trace.groups:
        paths.append(folder / GROUPS)
        paths[-1].write_text(json.dumps({name: list(members) for name, members in sorted(trace.groups.items())}) + "\n")
    return paths


def _encoded(nodes: Sequence[Node]) -> Iterator[NodeMessage]:
    spent = 0.0
    for node in nodes:
        before, spent = round(spent / MICRO), spent + node.seconds
        message = NodeMessage(
            id=node.id,
            name=node.name,
            type=int(node.type),
            data_deps=node.after,
            duration_micros=round(spent / MICRO) - before,
        )
        set_attribute(message, "is_cpu_op", "bool", False)
        if node.computes:
            set_attribute(message, "num_ops", "int64", node.flop)
            set_attribute(message, "tensor_size", "uint64", node.nbytes)
        else:
            set_attribute(message, "comm_size", "int64", node.nbytes)
        if node.operation is not None:
            set_attribute(message, "comm_type", "int64", int(node.operation))
        if node.group is not None:
            set_attribute(message, "pg_name", "string", node.group)
        if node.type in (NodeType.COMM_SEND, NodeType.COMM_RECV):
            set_attribute(message, "comm_dst" if node.type is NodeType.COMM_SEND else "comm_src", "int32", node.peer)
            set_attribute(message, "comm_tag", "int32", node.tag)
        yield message


def read_trace(folder: Path) -> Trace:
    """Reads the trace of all ranks from a folder. Raises SpecError, with a message of one line, for a trace that cannot
    be replayed."""
    paths = _files(folder)
    ranks: list[tuple[Node, ...]] = []
    about: dict[str, Any] = {}
    for rank, path in enumerate(paths):
        metadata, nodes = read_messages(path)
        about = about or attributes(metadata)
        ranks.append(tuple(_node(path, message, rank) for message in nodes))
        _check(path, ranks[-1])
    groups = _groups(folder, len(ranks))
    for path, rank_nodes in zip(paths, ranks, strict=True):
        named = next(
            (node for node in rank_nodes if node.group is not None and node.group not in groups and groups), None
        )
        if named is not None:
            raise SpecError(f"{path}: node {named.id} is of group {named.group!r}, which is not in {GROUPS}")
    return Trace(tuple(ranks), groups, about)


def _files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise SpecError(f"{folder}: no such folder; it holds the trace, <name>.<rank>.et for every rank")
    by_rank: dict[int, Path] = {}
    prefixes = set()
    for path in sorted(folder.iterdir()):
        match = _FILE.match(path.name)
        if match:
            prefixes.add(match[1])
            by_rank[int(match[2])] = path
    if not by_rank:
        raise SpecError(f"{folder}: no trace in it; files are named <name>.<rank>.et")
    if len(prefixes) > 1:
        raise SpecError(
            f"{folder}: traces of {len(prefixes)} names ({', '.join(sorted(prefixes)[:3])}); give a folder with one "
            "of them"
        )
    if len(by_rank) > MOST_RANKS:
        raise SpecError(f"{folder}: {len(by_rank)} ranks; {MOST_RANKS} are replayed at most")
    missing = next((rank for rank in range(len(by_rank)) if rank not in by_rank), None)
    if missing is not None:
        raise SpecError(f"{folder}: {len(by_rank)} files, but none of rank {missing}; ranks are numbered from 0")
    return [by_rank[rank] for rank in range(len(by_rank))]


def _groups(folder: Path, ranks: int) -> dict[str, tuple[int, ...]]:
    path = folder / GROUPS
    if not path.exists():
        return {}
    try:
        members_of = json.loads(path.read_text())
        groups = {str(name): tuple(int(member) for member in members) for name, members in members_of.items()}
    except (ValueError, TypeError, AttributeError):
        raise SpecError(f"{path}: not of the form {{'1': [0, 1]}}: a list of ranks by name of group") from None
    for name, members in groups.items():
        if not members or len(set(members)) < len(members) or not all(0 <= member < ranks for member in members):
            raise SpecError(f"{path}: group {name!r} has members that are no ranks of this trace, or twice the same")
    return groups


def _node(path: Path, message: NodeMessage, rank: int) -> Node:
    values, label = attributes(message), f"{path}: node {message.id}"
    try:
        kind = NodeType(message.type)
    except ValueError:
        kind = NodeType.COMP  # storage, batch and checkpoint nodes of later schemas count as computing
    number = {
        name: _count(label, values, name)
        for name in ("comm_size", "tensor_size", "num_ops", "comm_type", "comm_src", "comm_dst", "comm_tag")
    }
    operation = None
    if kind is NodeType.COMM_COLL:
        if number["comm_type"] not in {int(collective) for collective in Collective}:
            raise SpecError(f"{label} is a collective of unknown comm_type {number['comm_type']}")
        operation = Collective(number["comm_type"])
    sends = kind is NodeType.COMM_SEND
    if sends and number["comm_src"] not in (0, rank):
        raise SpecError(f"{label} sends from rank {number['comm_src']}, but this is the file of rank {rank}")
    communicates = kind in (NodeType.COMM_COLL, NodeType.COMM_SEND, NodeType.COMM_RECV)
    return Node(
        int(message.id),
        message.name,
        kind,
        (*message.data_deps, *message.ctrl_deps),
        message.duration_micros * MICRO,
        number["num_ops"],
        number["comm_size"] if communicates else number["tensor_size"],
        operation,
        str(values["pg_name"]) if values.get("pg_name") else None,
        number["comm_dst"] if sends else number["comm_src"],
        number["comm_tag"],
    )


def _count(label: str, values: Mapping[str, Any], name: str) -> int:
    value = values.get(name, 0)
    if isinstance(value, str | bytes | float) or value < 0:
        raise SpecError(f"{label} has {name} {value!r}, which is no count")
    return int(value)


def _check(path: Path, nodes: Sequence[Node]) -> None:
    ids = {node.id for node in nodes}
    if len(ids) < len(nodes):
        raise SpecError(f"{path}: two nodes have the same id")
    for node in nodes:
        unknown = next((other for other in node.after if other not in ids), None)
        if unknown is not None:
            raise SpecError(f"{path}: node {node.id} waits for node {unknown}, which does not exist")
    if len(in_order(nodes)) < len(nodes):
        raise SpecError(f"{path}: nodes wait for each other in a circle")


def in_order(nodes: Sequence[Node]) -> list[Node]:
    """Nodes in the order of the file, but each after the nodes it waits for. Nodes of a circle are left out."""
    position = {node.id: number for number, node in enumerate(nodes)}
    waiting = [len(set(node.after)) for node in nodes]
    behind: dict[int, list[int]] = {}
    for number, node in enumerate(nodes):
        for other in set(node.after):
            behind.setdefault(position[other], []).append(number)
    ready, ordered = [number for number, count in enumerate(waiting) if not count], []
    heapify(ready)
    while ready:
        number = heappop(ready)
        ordered.append(nodes[number])
        for other in behind.get(number, ()):
            waiting[other] -= 1
            if not waiting[other]:
                heappush(ready, other)
    return ordered
