"""Captures what nodes send: the headers of all frames as a pcap file, and counts by kind; for RoCEv2 counts by
operation, messages and payload.

A frame counts once, where it leaves its node, with its Ethernet header but without the 24 bytes of preamble, checksum
and gap."""

from __future__ import annotations

import ctypes
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scaleproof.fabric.probe import ECHO_PORT, STREAM_PORT

FILE = "wire.pcap"
KEPT = 96
"""Recorded bytes of each frame: more than all headers of RoCEv2 together."""
ROCE_PORT = 4791
QUEUE = 64 << 20
"""Bytes of headers that the kernel buffers for this process; it counts the frames that it drops."""
_MAGIC_NS, _ETHERNET = 0xA1B23C4D, 1
_HEAD, _RECORD = struct.Struct("<IHHiIII"), struct.Struct("<IIII")
_SOL_PACKET, _STATISTICS, _AUXDATA, _OUTGOING, _ANY = 263, 6, 8, 4, 3
_SO_ATTACH_FILTER, _SO_RCVBUFFORCE = 26, 33

_RETH, _AETH, _IMMEDIATE, _ATOMIC = 16, 4, 4, 28
OPERATIONS = {
    0: ("SEND_FIRST", 0),
    1: ("SEND_MIDDLE", 0),
    2: ("SEND_LAST", 0),
    3: ("SEND_LAST_WITH_IMM", _IMMEDIATE),
    4: ("SEND_ONLY", 0),
    5: ("SEND_ONLY_WITH_IMM", _IMMEDIATE),
    6: ("WRITE_FIRST", _RETH),
    7: ("WRITE_MIDDLE", 0),
    8: ("WRITE_LAST", 0),
    9: ("WRITE_LAST_WITH_IMM", _IMMEDIATE),
    10: ("WRITE_ONLY", _RETH),
    11: ("WRITE_ONLY_WITH_IMM", _RETH + _IMMEDIATE),
    12: ("READ_REQUEST", _RETH),
    13: ("READ_RESPONSE_FIRST", _AETH),
    14: ("READ_RESPONSE_MIDDLE", 0),
    15: ("READ_RESPONSE_LAST", _AETH),
    16: ("READ_RESPONSE_ONLY", _AETH),
    17: ("ACKNOWLEDGE", _AETH),
    18: ("ATOMIC_ACKNOWLEDGE", _AETH + 8),
    19: ("COMPARE_SWAP", _ATOMIC),
    20: ("FETCH_ADD", _ATOMIC),
    100: ("UD_SEND_ONLY", 8),
}
"""Opcode of the base transport header to its name and the bytes of headers behind it (InfiniBand Architecture
Specification 1.4, table 38)."""
_BASE, _CHECKSUM = 12, 4
_MESSAGE_ENDS = ("_LAST", "_ONLY", "_WITH_IMM", "READ_REQUEST", "COMPARE_SWAP", "FETCH_ADD")


class Capture:
    """Records frames from taps, in a thread, until `stop`."""

    def __init__(self, path: Path, taps: list[str]) -> None:
        self.path, self.lost = path, 0
        self._ending = threading.Event()
        self._sockets = [_listen(tap) for tap in taps]
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> dict[str, Any]:
        """Stop, and return `count` of the file and `lost`, the number of frames that were not recorded."""
        self._ending.set()
        self._thread.join()
        for opened in self._sockets:
            self.lost += struct.unpack("<II", opened.getsockopt(_SOL_PACKET, _STATISTICS, 8))[1]
            opened.close()
        return count(self.path) | {"lost": self.lost}

    def _run(self) -> None:
        with self.path.open("wb") as file:
            file.write(_HEAD.pack(_MAGIC_NS, 2, 4, 0, 0, KEPT, _ETHERNET))
            while True:
                frames_read = sum(self._drain(opened, file) for opened in self._sockets)
                if not frames_read and self._ending.is_set():
                    return
                if not frames_read:
                    time.sleep(0.005)

    def _drain(self, opened: socket.socket, file: Any) -> int:
        frames_read = 0
        while frames_read < 1000:
            try:
                data, extra, _, sender = opened.recvmsg(KEPT, 64)
            except BlockingIOError:
                break
            frames_read += 1
            if sender[2] != _OUTGOING:
                length = next(
                    (
                        struct.unpack_from("<II", body)[1]
                        for level, kind, body in extra
                        if (level, kind) == (_SOL_PACKET, _AUXDATA)
                    ),
                    len(data),
                )
                file.write(_RECORD.pack(*divmod(time.time_ns(), 10**9), len(data), length) + data)
        return frames_read


def _listen(tap: str) -> socket.socket:
    opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    # One instruction of a packet filter: accept the first KEPT bytes.
    program = ctypes.create_string_buffer(struct.pack("<HBBI", 0x06, 0, 0, KEPT))
    opened.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("@HP", 1, ctypes.addressof(program)))
    opened.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, QUEUE)
    opened.setsockopt(_SOL_PACKET, _AUXDATA, 1)
    opened.setblocking(False)
    opened.bind((tap, _ANY))
    return opened


def frames(path: Path) -> Iterator[tuple[bytes, int]]:
    """The recorded bytes of every frame of a pcap file, and its length on the wire."""
    data = path.read_bytes()
    if len(data) < _HEAD.size or _HEAD.unpack_from(data)[0] not in (_MAGIC_NS, 0xA1B2C3D4):
        raise ValueError(f"{path} is no pcap file of this byte order")
    at = _HEAD.size
    while at + _RECORD.size <= len(data):
        size, length = _RECORD.unpack_from(data, at)[2:]
        at += _RECORD.size
        yield data[at : at + size], length
        at += size


def count(path: Path) -> dict[str, Any]:
    """Frames and bytes by kind; `roce`: counts by operation, messages, payload bytes and retransmissions. Kind `probe`
    is the fabric's own measurement of its links."""
    kinds: Counter[str] = Counter()
    nbytes: Counter[str] = Counter()
    operations: Counter[str] = Counter()
    payload = again = 0
    counted: set[bytes] = set()
    for frame, length in frames(path):
        kind, body = _kind(frame)
        kinds[kind] += 1
        nbytes[kind] += length
        if kind == "roce":
            name, carried = operation(body)
            operations[name] += 1
            mark = (
                frame[26:30] + body[8:9] + body[13:16] + body[17:20]
            )  # sender, opcode, queue pair, packet sequence number
            again += name != "ACKNOWLEDGE" and mark in counted
            payload += carried if mark not in counted else 0
            counted.add(mark)
    messages = sum(
        number
        for name, number in operations.items()
        if "RESPONSE" not in name and any(end in name for end in _MESSAGE_ENDS)
    )
    roce = {
        "operations": dict(sorted(operations.items())),
        "messages": messages,
        "payload_bytes": payload,
        "again": again,
    }
    by_kind = {kind: {"frames": kinds[kind], "bytes": nbytes[kind]} for kind in sorted(kinds)}
    return {"frames": kinds.total(), "bytes": nbytes.total(), "kinds": by_kind, "roce": roce}


def operation(datagram: bytes) -> tuple[str, int]:
    """Name of a RoCEv2 datagram's operation, and the bytes of payload that it carries. `datagram` begins with the UDP
    header."""
    opcode, flags = datagram[8], datagram[9]
    name, headers = OPERATIONS.get(opcode, (f"OPCODE_{opcode:#04x}", 0))
    padding = flags >> 4 & 3
    return name, max(struct.unpack_from(">H", datagram, 4)[0] - 8 - _BASE - headers - _CHECKSUM - padding, 0)


def _kind(frame: bytes) -> tuple[str, bytes]:
    """The kind of a frame, and for RoCEv2 the bytes after the IPv4 header."""
    protocol = struct.unpack_from(">H", frame, 12)[0]
    if protocol != 0x0800:
        return {0x0806: "arp", 0x86DD: "ipv6"}.get(protocol, "other"), b""
    body = frame[14 + 4 * (frame[14] & 15) :]
    if frame[23] not in (6, 17):
        return "other ipv4", b""
    ports = struct.unpack_from(">HH", body)
    name, own = ("tcp", STREAM_PORT) if frame[23] == 6 else ("udp", ECHO_PORT)
    if own in ports:
        return "probe", b""
    return ("roce", body) if name == "udp" and ports[1] == ROCE_PORT else (name, b"")
