"""Reads and writes files of Chakra messages: the metadata and then one message per node, each preceded by its length.

Integers are written in the types that the feeders of Chakra and ASTRA-sim read (src/feeder/et_feeder_node.cpp).
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from io import BufferedReader
from pathlib import Path
from typing import Literal, TypeVar

from google.protobuf import proto
from google.protobuf.message import DecodeError

from scaleproof.simulate.chakra.chakra_messages_pb2 import GlobalMetadata, Node
from scaleproof.spec.errors import SpecError

VERSION = "0.0.4"
MOST_MESSAGE, MOST_NODES, MOST_FILE = 16 << 20, 2_000_000, 1 << 30
"""Limits on bytes of a message, nodes of a file and bytes of a file. A trace of a training step is smaller."""
Message = TypeVar("Message", GlobalMetadata, Node)
Kind = Literal["bool", "int32", "int64", "uint64", "string"]
"""Type of an attribute's value."""


class NodeType(IntEnum):
    """What a node does."""

    INVALID = 0
    METADATA = 1
    MEM_LOAD = 2
    MEM_STORE = 3
    COMP = 4
    COMM_SEND = 5
    COMM_RECV = 6
    COMM_COLL = 7


class Collective(IntEnum):
    """Attribute comm_type of a COMM_COLL node."""

    ALL_REDUCE = 0
    REDUCE = 1
    ALL_GATHER = 2
    GATHER = 3
    SCATTER = 4
    BROADCAST = 5
    ALL_TO_ALL = 6
    REDUCE_SCATTER = 7
    REDUCE_SCATTER_BLOCK = 8
    BARRIER = 9


def set_attribute(message: GlobalMetadata | Node, name: str, kind: Kind, value: bool | int | str) -> None:
    """Add an attribute to a metadata or a node."""
    message.attr.add(name=name, **{f"{kind}_val": value})


def attributes(message: GlobalMetadata | Node) -> dict[str, bool | int | float | str | bytes]:
    """Values by name, whatever their type; lists are left out."""
    values = {}
    for attribute in message.attr:
        kind = attribute.WhichOneof("value")
        if kind is not None:
            values[attribute.name] = getattr(attribute, kind)
    return values


def write_messages(path: Path, metadata: GlobalMetadata, nodes: Iterable[Node]) -> None:
    """Write one file."""
    with path.open("wb") as file:
        for message in (metadata, *nodes):
            proto.serialize_length_prefixed(message, file)


def read_messages(path: Path) -> tuple[GlobalMetadata, list[Node]]:
    """Metadata and nodes of one file. Raises SpecError, with a message of one line, for a file that is broken or too
    large."""
    size = path.stat().st_size
    if size > MOST_FILE:
        raise SpecError(f"{path}: {size} bytes; a Chakra trace of more than {MOST_FILE} is not read")
    nodes: list[Node] = []
    with path.open("rb") as file:
        metadata = _message(GlobalMetadata, _LimitedReader(file, f"{path}: message 0"))
        if metadata is None:
            raise SpecError(f"{path}: is empty; a Chakra trace begins with metadata")
        while (node := _message(Node, _LimitedReader(file, f"{path}: message {len(nodes) + 1}"))) is not None:
            nodes.append(node)
            if len(nodes) > MOST_NODES:
                raise SpecError(f"{path}: more than {MOST_NODES} nodes")
    return metadata, nodes


class _LimitedReader:
    """Lets protobuf read one message of a file, unless the length in front of it is too large."""

    def __init__(self, file: BufferedReader, label: str) -> None:
        self.label, self._file = label, file

    def read(self, nbytes: int) -> bytes:
        """Like a file's `read`, but at most MOST_MESSAGE bytes. Raises SpecError if the file ends inside a message."""
        if nbytes > MOST_MESSAGE:
            raise SpecError(f"{self.label} would have {nbytes} bytes; this is no Chakra trace")
        content = self._file.read(nbytes)
        if len(content) < nbytes and nbytes > 1:
            raise SpecError(f"{self.label} is cut off: the file ends {nbytes - len(content)} bytes too early")
        return content


def _message(kind: type[Message], reader: _LimitedReader) -> Message | None:
    """The next message; None at the end of the file."""
    try:
        return proto.parse_length_prefixed(kind, reader)
    except SpecError:  # also a ValueError
        raise
    except DecodeError as error:
        raise SpecError(f"{reader.label} is no Chakra {kind.DESCRIPTOR.name}: {error}") from None
    except ValueError:  # protobuf reads a length byte by byte; the file ended inside it
        raise SpecError(f"{reader.label} has no length, or is cut off; this is no Chakra trace") from None
