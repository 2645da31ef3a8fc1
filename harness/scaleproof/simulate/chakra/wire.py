"""Chakra's messages as protobuf, and files of them: each message behind its length as a varint, first the metadata,
then a node each.

Field numbers and types are those of `schema/protobuf/et_def.proto` of mlcommons/chakra (commit
6dc63e147b9d115286626cc122459e44d9d08401, Apache-2.0), schema
0.0.4; only fields that are read or written here are declared, others are skipped by protobuf. Integers are written in
the kinds that the feeders of Chakra and
ASTRA-sim read (src/feeder/et_feeder_node.cpp).
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from functools import cache
from pathlib import Path
from typing import Any

from scaleproof.spec.errors import SpecError

VERSION = "0.0.4"
MOST_MESSAGE, MOST_NODES, MOST_FILE = 16 << 20, 2_000_000, 1 << 30
"""Bytes of a message, nodes of a file, bytes of a file: more is no trace of a training step."""
_PACKAGE = "ChakraProtoMsg"
_KINDS = {
    "double": 1,
    "float": 2,
    "int64": 3,
    "uint64": 4,
    "int32": 5,
    "fixed64": 6,
    "fixed32": 7,
    "bool": 8,
    "string": 9,
    "bytes": 12,
    "uint32": 13,
    "sfixed32": 15,
    "sfixed64": 16,
    "sint32": 17,
    "sint64": 18,
}
"""Numbers of FieldDescriptorProto.Type."""
_VALUES = {
    "double": 3,
    "float": 5,
    "int32": 7,
    "int64": 9,
    "uint32": 11,
    "uint64": 13,
    "sint32": 15,
    "sint64": 17,
    "fixed32": 19,
    "fixed64": 21,
    "sfixed32": 23,
    "sfixed64": 25,
    "bool": 27,
    "string": 29,
    "bytes": 31,
}
"""Field numbers of an attribute's value, `<kind>_val`, one of them."""


class Type(IntEnum):
    """Of a node."""

    INVALID = 0
    METADATA = 1
    MEM_LOAD = 2
    MEM_STORE = 3
    COMP = 4
    COMM_SEND = 5
    COMM_RECV = 6
    COMM_COLL = 7


class Collective(IntEnum):
    """Of a COMM_COLL node, attribute comm_type."""

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


@cache
def messages() -> tuple[Any, Any]:
    """The classes GlobalMetadata and Node."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(name="et_def.proto", package=_PACKAGE, syntax="proto3")
    attribute = file.message_type.add(name="AttributeProto")
    _field(attribute, "name", 1, "string")
    attribute.oneof_decl.add(name="value")
    for kind, number in _VALUES.items():
        _field(attribute, f"{kind}_val", number, kind).oneof_index = 0
    metadata = file.message_type.add(name="GlobalMetadata")
    _field(metadata, "version", 1, "string")
    _attributes(metadata, 2)
    node = file.message_type.add(name="Node")
    for name, number, kind in (
        ("id", 1, "uint64"),
        ("name", 2, "string"),
        ("type", 3, "int32"),
        ("duration_micros", 7, "uint64"),
    ):
        _field(node, name, number, kind)
    for name, number in (("ctrl_deps", 4), ("data_deps", 5)):
        _field(node, name, number, "uint64").label = 3
    _attributes(node, 10)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    found = [
        message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))
        for name in ("GlobalMetadata", "Node")
    ]
    return found[0], found[1]


def _field(message: Any, name: str, number: int, kind: str) -> Any:
    return message.field.add(name=name, number=number, type=_KINDS[kind], label=1)


def _attributes(message: Any, number: int) -> None:
    message.field.add(name="attr", number=number, type=11, label=3, type_name=f".{_PACKAGE}.AttributeProto")


def set_attribute(message: Any, name: str, kind: str, value: Any) -> None:
    """Add one to a metadata or a node."""
    message.attr.add(name=name, **{f"{kind}_val": value})


def attributes(message: Any) -> dict[str, Any]:
    """By name, whatever kind each was written in; lists are left out."""
    return {one.name: getattr(one, which) for one in message.attr if (which := one.WhichOneof("value"))}


def write(path: Path, metadata: Any, nodes: Iterator[Any]) -> None:
    """One file."""
    with path.open("wb") as target:
        for message in (metadata, *nodes):
            content = message.SerializeToString(deterministic=True)
            target.write(_varint(len(content)) + content)


def read(path: Path) -> tuple[Any, list[Any]]:
    """Metadata and nodes of one file. SpecError, in one line, for a file that is none, ends too early or is too large."""
    from google.protobuf.message import DecodeError

    size = path.stat().st_size
    if size > MOST_FILE:
        raise SpecError(f"{path}: {size} bytes; a Chakra trace of more than {MOST_FILE} is not read")
    metadata_kind, node_kind = messages()
    found: list[Any] = []
    for number, content in enumerate(_contents(path)):
        message = node_kind() if number else metadata_kind()
        try:
            message.ParseFromString(content)
        except DecodeError as error:
            raise SpecError(
                f"{path}: message {number} is no Chakra {'node' if number else 'metadata'}: {error}"
            ) from None
        found.append(message)
        if number > MOST_NODES:
            raise SpecError(f"{path}: more than {MOST_NODES} nodes")
    if not found:
        raise SpecError(f"{path}: is empty; a Chakra trace begins with its metadata")
    return found[0], found[1:]


def _contents(path: Path) -> Iterator[bytes]:
    data, place, number = path.read_bytes(), 0, 0
    while place < len(data):
        length, place = _length(data, place, f"{path}: message {number}")
        if length > MOST_MESSAGE:
            raise SpecError(f"{path}: message {number} would have {length} bytes; this is no Chakra trace")
        if place + length > len(data):
            raise SpecError(f"{path}: ends inside message {number}, {place + length - len(data)} bytes too early")
        yield data[place : place + length]
        place, number = place + length, number + 1


def _length(data: bytes, place: int, what: str) -> tuple[int, int]:
    value = 0
    for shift in range(0, 35, 7):
        if place >= len(data):
            raise SpecError(f"{what} ends inside its length")
        byte, place = data[place], place + 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
    raise SpecError(f"{what} has no length; this is no Chakra trace")


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])
