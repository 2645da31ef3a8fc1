"""Connections between all ranks of a launch. A peer must prove that it knows the launch's token before any other bytes
are read from it."""

from __future__ import annotations

import contextlib
import hmac
import ipaddress
import secrets
import socket
import struct
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from scaleproof.core.transport_errors import TransportError

if TYPE_CHECKING:
    from scaleproof.core.context import RankContext

NONCE = 32
RANK = struct.Struct("<I")
PROOF_S = 2.0
"""How long a proof may take; connections without one are dropped, one after the other."""
CONNECT_S = 60.0
LOOK_S = 0.5
"""How often who accepts looks whether a peer is still to be expected."""
LOOPBACK_CONGESTION = "reno"
"""There is no queue to protect between two processes of one machine, where pacing (bbr) halves the throughput."""


class Refused(Exception):
    """The other side did not prove that it knows the token."""


def connect_all(context: RankContext, name: str = "tcp") -> dict[int, socket.socket]:
    """One connected socket per peer: this rank connects to lower ranks and accepts higher ones. `name`: of the key in
    the rendezvous, unique in the launch."""
    deadline = time.monotonic() + CONNECT_S
    with _listener(context) as listener:
        addresses = context.rendezvous.exchange(
            f"{name}.place", context.rank, context.world_size, [context.address, listener.getsockname()[1]]
        )
        sockets: dict[int, socket.socket] = {}
        try:
            for peer in range(context.rank):
                sockets[peer] = connect(context, peer, *addresses[peer])
            while missing := set(range(context.rank + 1, context.world_size)) - set(sockets):
                _accept(context, listener, sockets, deadline, missing)
        except BaseException:
            for opened in sockets.values():
                opened.close()
            raise
    for opened in sockets.values():
        opened.setblocking(False)
    return sockets


def connect_successor(context: RankContext, name: str, gone: Callable[[int], bool]) -> dict[int, socket.socket]:
    """Of a rank that takes the place of one that was killed: a connected socket per peer, all of which connect to it
    when they find its place in the rendezvous. `gone`: peers that will not."""
    deadline, sockets = time.monotonic() + CONNECT_S, dict[int, socket.socket]()
    with _listener(context) as listener:
        context.rendezvous.publish(place_of_successor(name, context.rank), [context.address, listener.getsockname()[1]])
        peers = set(range(context.world_size)) - {context.rank}
        while missing := {peer for peer in peers - set(sockets) if not gone(peer)}:
            _accept(context, listener, sockets, deadline, missing)
    for opened in sockets.values():
        opened.setblocking(False)
    return sockets


def place_of_successor(name: str, rank: int) -> str:
    """The key of the rendezvous."""
    return f"{name}.successor.{rank}"


def answer(connection: socket.socket, token: str, launch_id: str) -> int:
    """The accepting side's part: returns the rank that the other side proved to be; raises Refused or OSError."""
    connection.settimeout(PROOF_S)
    challenge = secrets.token_bytes(NONCE)
    connection.sendall(challenge)
    reply = _read(connection, RANK.size + NONCE + 32)
    identity, proof = reply[: RANK.size + NONCE], reply[RANK.size + NONCE :]
    if not hmac.compare_digest(proof, _proof(token, launch_id, b"connect", challenge, identity)):
        raise Refused("wrong token")
    connection.sendall(_proof(token, launch_id, b"accept", challenge, identity))
    rank: int = RANK.unpack(identity[: RANK.size])[0]
    return rank


def prove(connection: socket.socket, token: str, launch_id: str, rank: int, timeout_s: float = CONNECT_S) -> None:
    """The connecting side's part; raises Refused or OSError."""
    connection.settimeout(timeout_s)
    challenge = _read(connection, NONCE)
    identity = RANK.pack(rank) + secrets.token_bytes(NONCE)
    connection.sendall(identity + _proof(token, launch_id, b"connect", challenge, identity))
    if not hmac.compare_digest(_read(connection, 32), _proof(token, launch_id, b"accept", challenge, identity)):
        raise Refused("wrong token")


def connect(context: RankContext, peer: int, address: str, port: int) -> socket.socket:
    """A connection to a rank that accepts this one."""
    connection = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
    try:
        _tune(connection, address)
        connection.settimeout(CONNECT_S)
        connection.connect((address, port))
        prove(connection, context.token, context.launch_id, context.rank)
    except (OSError, Refused) as error:
        connection.close()
        raise TransportError(
            f"rank {context.rank} could not connect to rank {peer} at {address}:{port}: {error}"
        ) from error
    return connection


def _listener(context: RankContext) -> socket.socket:
    family = socket.AF_INET6 if ":" in context.address else socket.AF_INET
    listener = socket.create_server((context.address, 0), family=family, backlog=context.world_size + 8)
    _tune(listener, context.address)
    return listener


def _accept(
    context: RankContext, listener: socket.socket, sockets: dict[int, socket.socket], deadline: float, missing: set[int]
) -> None:
    """One of the missing peers, or none within a while."""
    remaining_s = deadline - time.monotonic()
    if remaining_s <= 0:
        raise TransportError(f"ranks {sorted(missing)} did not connect to rank {context.rank} within {CONNECT_S:g} s")
    listener.settimeout(min(remaining_s, LOOK_S))
    with contextlib.suppress(TimeoutError, OSError, Refused):
        connection = listener.accept()[0]
        try:
            peer = answer(connection, context.token, context.launch_id)
            if peer not in missing:
                raise Refused(f"rank {peer} is not expected")
            _tune(connection, context.address)
            sockets[peer] = connection
        except BaseException:
            connection.close()
            raise


def _tune(connection: socket.socket, address: str) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in ((socket.TCP_KEEPIDLE, 5), (socket.TCP_KEEPINTVL, 1), (socket.TCP_KEEPCNT, 5)):
        connection.setsockopt(socket.IPPROTO_TCP, option, value)
    if ipaddress.ip_address(address).is_loopback:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, LOOPBACK_CONGESTION.encode())


def _read(connection: socket.socket, nbytes: int) -> bytes:
    received = bytearray()
    while len(received) < nbytes:
        part = connection.recv(nbytes - len(received))
        if not part:
            raise Refused("the other side closed the connection")
        received += part
    return bytes(received)


def _proof(token: str, launch_id: str, role: bytes, challenge: bytes, identity: bytes) -> bytes:
    return hmac.digest(
        token.encode(), b"\0".join([b"scaleproof", role, launch_id.encode()]) + challenge + identity, "sha256"
    )
