"""Files of Chakra's messages: each message behind its length, first the metadata, then a node each.

Integers are written in the kinds that the feeders of Chakra and ASTRA-sim read (src/feeder/et_feeder_node.cpp).
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
"""Bytes of a message, nodes of a file, bytes of a file: more is no trace of a training step."""
Message = TypeVar("Message", GlobalMetadata, Node)
Kind = Literal["bool", "int32", "int64", "uint64", "string"]
"""Of an attribute's value."""


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
    """Values by name, whatever kind each was written in; lists are left out."""
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
    """Metadata and nodes of one file. SpecError, in one line, for a file that is broken or too large."""
    size = path.stat().st_size
    if size > MOST_FILE:
        raise SpecError(f"{path}: {size} bytes; a Chakra trace of more than {MOST_FILE} is not read")
    nodes: list[Node] = []
    with path.open("rb") as file:
        metadata = _message(GlobalMetadata, _LimitedReader(file, f"{path}: message 0"))
        if metadata is None:
            raise SpecError(f"{path}: is empty; a Chakra trace begins with its metadata")
        while (node := _message(Node, _LimitedReader(file, f"{path}: message {len(nodes) + 1}"))) is not None:
            nodes.append(node)
            if len(nodes) > MOST_NODES:
                raise SpecError(f"{path}: more than {MOST_NODES} nodes")
    return metadata, nodes


class _LimitedReader:
    """Gives protobuf one message of a file, unless the length that stands before it is too large."""

    def __init__(self, file: BufferedReader, what: str) -> None:
        self.what, self._file = what, file

    def read(self, nbytes: int) -> bytes:
        """As of a file, but never more than MOST_MESSAGE bytes. SpecError where the file ends inside a message."""
        if nbytes > MOST_MESSAGE:
            raise SpecError(f"{self.what} would have {nbytes} bytes; this is no Chakra trace")
        content = self._file.read(nbytes)
        if len(content) < nbytes and nbytes > 1:
            raise SpecError(f"{self.what} is cut off: the file ends {nbytes - len(content)} bytes too early")
        return content


def _message(kind: type[Message], reader: _LimitedReader) -> Message | None:
    """The next message; None at the end of the file."""
    try:
        return proto.parse_length_prefixed(kind, reader)
    except SpecError:  # a ValueError too
        raise
    except DecodeError as error:
        raise SpecError(f"{reader.what} is no Chakra {kind.DESCRIPTOR.name}: {error}") from None
    except ValueError:  # protobuf reads a length byte by byte, and found the file's end in it
        raise SpecError(f"{reader.what} has no length, or is cut off; this is no Chakra trace") from None
