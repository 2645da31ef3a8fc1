"""The connection between a launch's coordinator and the agent of a node. Each side proves that it knows the launch's
token; then both exchange messages of JSON and raw bytes."""

from __future__ import annotations

import json
import socket
import struct
import threading
from contextlib import suppress
from typing import Any

UNABLE = 3
"""Exit code of an agent that could not connect to its coordinator and wrote the reason to its standard error. (A remote
shell that cannot reach its host ends with 255.)"""
BEAT_S, LOST_S = 1.0, 10.0
"""How often both sides send a beat, and how long a side may be silent: less than a rank may be (SILENT_S), since a lost
node is the reason for its silent ranks."""
FAILED_AGENT = "scaleproof-agent "
"""Prefix of the line on standard error in which an agent without a connection reports the reason: JSON with `node`, its
number, and `why`. The launch's log keeps it."""
_HEAD = struct.Struct("<II")
LONGEST_JSON, PIECE = 1 << 16, 1 << 20
"""Bytes of a message's JSON, and of the piece of a file behind it."""


def failed_agent_line(node: int, why: str) -> str:
    """See FAILED_AGENT."""
    return FAILED_AGENT + json.dumps({"node": node, "why": why})


def failed_agents(log: str) -> dict[int, str]:
    """Node to the last reason that its agent reported without a connection. Lines of several nodes may run into each
    other."""
    reasons = {}
    for part in log.split(FAILED_AGENT)[1:]:
        with suppress(ValueError):  # the line is not complete yet
            answer, _ = json.JSONDecoder().raw_decode(part)
            reasons[int(answer["node"])] = str(answer["why"])
    return reasons


class LinkLost(Exception):
    """The connection to the other side is lost; the message says how that was noticed."""


class Link:
    """Messages in both directions. Any thread may send, one thread receives."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.settimeout(LOST_S)
        self._socket, self._sending = connection, threading.Lock()

    def send(self, kind: str, body: bytes | memoryview = b"", **fields: Any) -> None:
        """Send one message; LinkLost when that fails."""
        text = json.dumps({"kind": kind, **fields}).encode()
        if len(text) > LONGEST_JSON or len(body) > PIECE:
            raise ValueError(f"a message {kind!r} of {len(text)} and {len(body)} bytes is longer than a link carries")
        try:
            with self._sending:
                self._socket.sendall(_HEAD.pack(len(text), len(body)) + text + bytes(body))
        except TimeoutError:
            raise LinkLost(f"it took nothing for {LOST_S:g} s") from None
        except OSError as error:
            raise LinkLost(f"its connection closed ({error.strerror or error})") from None

    def receive(self) -> tuple[dict[str, Any], bytes]:
        """The next message; LinkLost also after LOST_S without a message."""
        text, body = _HEAD.unpack(self._read(_HEAD.size))
        if text > LONGEST_JSON or body > PIECE:
            raise LinkLost(f"it announced a message of {text} and {body} bytes")
        try:
            message = json.loads(self._read(text))
        except ValueError:
            raise LinkLost("it sent what is no JSON") from None
        if not isinstance(message, dict) or not isinstance(message.get("kind"), str):
            raise LinkLost("it sent what is no message")
        return message, self._read(body)

    def close(self) -> None:
        """Close both directions; a thread that receives gets LinkLost."""
        with suppress(OSError):  # the other side has closed it
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _read(self, nbytes: int) -> bytes:
        received = bytearray()
        while len(received) < nbytes:
            try:
                part = self._socket.recv(nbytes - len(received))
            except TimeoutError:
                raise LinkLost(f"nothing was heard of it for {LOST_S:g} s") from None
            except OSError as error:
                raise LinkLost(f"its connection closed ({error.strerror or error})") from None
            if not part:
                raise LinkLost("its connection closed")
            received += part
        return bytes(received)
