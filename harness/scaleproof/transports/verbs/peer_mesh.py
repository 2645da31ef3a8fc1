"""The connections of a rank to all peers: set up through the rendezvous, driven by whoever waits, closed without
leftovers."""

from __future__ import annotations

import os
import socket
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from scaleproof.core.transport_errors import TransportError
from scaleproof.transports._waiting import CROWDED_SPINS, SPINS, YIELD_NS, wait_until
from scaleproof.transports.verbs.credits import RESERVE, Kind, unpack
from scaleproof.transports.verbs.device_errors import FLUSHED, failure
from scaleproof.transports.verbs.one_sided_transfers import OneSidedQueue
from scaleproof.transports.verbs.peer_connection import (
    BULK_QUEUE_PAIRS,
    BULK_RECEIVES,
    MESSAGE_RECEIVES,
    SEND_DEPTH,
    PeerConnection,
)
from scaleproof.transports.verbs.send_receive import Inbox, Outbox
from scaleproof.transports.verbs.verbs_device import VerbsDevice

if TYPE_CHECKING:
    from scaleproof.core.context import RankContext

CLOSE_S = 4.0
"""How long `close` waits, at most, until everything under way is acknowledged: as long as a silent peer is retried."""
SLEEP_S = 0.05
"""How long a rank sleeps on the completion channel, which wakes it, before it checks whether the peer is still
there."""
MIN_DEPTH = 16


class VerbsPeer:
    """The connection to one peer and what travels on it."""

    def __init__(self, connection: PeerConnection) -> None:
        self.connection = connection
        self.outbox, self.inbox, self.one_sided = Outbox(connection), Inbox(connection), OneSidedQueue(connection)

    @property
    def quiet(self) -> bool:
        """Whether nothing is under way that can still be done."""
        return self.connection.quiet and (self.connection.lost is not None or self.one_sided.empty)

    def push(self) -> None:
        """Post what can be posted."""
        if self.connection.lost is None:
            self.connection.push()
            self.inbox.push()
            self.outbox.push()
            self.one_sided.push()


class Mesh:
    """`operations`: work requests by opcode, their bytes, and probes; `copies`: bytes that this rank copied on their
    way, by reason."""

    def __init__(self, context: RankContext, device: VerbsDevice, local_ranks: int) -> None:
        self.device = device
        self.operations: Counter[str] = Counter()
        self.copies: Counter[str] = Counter()
        self._context = context
        self._spins = (
            CROWDED_SPINS if device.address.port.software or local_ranks > len(os.sched_getaffinity(0)) else SPINS
        )
        # A software device needs the core itself, so it is yielded for no time before the rank sleeps.
        self._yield_ns = 0 if device.address.port.software else YIELD_NS
        self.peers: dict[int, VerbsPeer] = {}
        self._by_queue_pair: dict[int, tuple[VerbsPeer, int]] = {}
        self._moved = 0

    def connect(self) -> None:
        """Connect all queue pairs to every peer; they are ready on both sides when this returns."""
        context, others = (
            self._context,
            [peer for peer in range(self._context.world_size) if peer != self._context.rank],
        )
        depth = _depth(self.device, len(others))
        self.device.open_queue(
            max(len(others), 1) * ((1 + BULK_QUEUE_PAIRS) * depth + MESSAGE_RECEIVES + BULK_QUEUE_PAIRS * BULK_RECEIVES)
        )
        for peer in others:
            connection = PeerConnection(
                self.device, peer, depth, (self.operations, self.copies), self.advance, partial(self._block, peer=peer)
            )
            self.peers[peer] = VerbsPeer(connection)
            self._by_queue_pair |= {
                queue_pair.number: (self.peers[peer], index) for index, queue_pair in enumerate(connection.queue_pairs)
            }
        port, gid = self.device.address.port, self.device.address.gid
        own = {
            "base": self.device.region.address,
            "key": self.device.mr.rkey,
            "lid": port.lid,
            "gid": gid.value if gid else "",
            "mtu": self.device.mtu,
        }
        own["connections"] = {str(peer): entry.connection.describe() for peer, entry in self.peers.items()}
        devices = context.rendezvous.exchange("rdma.place", context.rank, context.world_size, own)
        for peer, entry in self.peers.items():
            entry.connection.connect(
                devices[peer],
                devices[peer]["connections"][str(context.rank)],
                min(self.device.mtu, devices[peer]["mtu"]),
            )
        context.rendezvous.exchange("rdma.ready", context.rank, context.world_size, True)

    def advance(self) -> bool:
        """Process completions and post what can be posted; True when there was a completion."""
        completions = self.device.poll()
        for completion in completions:
            self._completed(completion)
        for peer in self.peers.values():
            peer.push()
        return bool(completions)

    def wait_for(self, ready: Callable[[], bool], rank: int) -> None:
        """Call `ready` until it returns True. It may read memory, whose change wakes no sleeper, so sleeps are
        short."""
        check, turned = self.peers[rank].connection.check, partial(self._advance_and_test, ready)
        wait_until(turned, check, self._spins, self._context.post, rank, yield_ns=self._yield_ns, moved=self.moved)

    def raise_if_lost(self, rank: int) -> None:
        """Raise the error that broke the connection to a rank."""
        lost = self.peers[rank].connection.lost
        if lost:
            raise lost

    def close(self) -> None:
        """Wait until everything under way is acknowledged, send the last messages, release everything."""
        links, deadline = [peer.connection for peer in self.peers.values()], time.monotonic() + CLOSE_S
        self._drain(deadline)
        for connection in links:
            if connection.may_send(paid=False):
                connection.send_message(Kind.LEAVING, callback=_ignore)
        self._drain(deadline)
        self.release()

    def release(self) -> None:
        """Destroy all connections and the device without waiting."""
        for peer in self.peers.values():
            peer.connection.close()
        self.peers = {}
        self.device.close()

    def _completed(self, completion: Any) -> None:
        peer, index = self._by_queue_pair[completion.qp_num]
        self._moved += index > 0  # the message queue pair carries probes, which are no progress
        connection, token = peer.connection, completion.wr_id >> 1
        if completion.status:
            if completion.status != FLUSHED or connection.lost is None:
                connection.fail(failure(completion.status, connection.peer, completion.vendor_err))
        elif not completion.wr_id & 1:
            connection.queue_pairs[index].retire(token)
        elif index:
            connection.post_bulk_receive(index - 1)
            peer.inbox.filled(index - 1, unpack(socket.ntohl(completion.imm_data))[2])
        else:
            self._message_arrived(peer, token, completion)

    def _message_arrived(self, peer: VerbsPeer, slot: int, completion: Any) -> None:
        kind, credits, number = unpack(socket.ntohl(completion.imm_data))
        connection, payload = peer.connection, peer.connection.payload(slot, completion.byte_len)
        connection.credits.add(credits)
        if kind is Kind.DATA:
            peer.inbox.arrived(number, payload)
        elif kind is Kind.GRANT:
            peer.outbox.granted(payload)
        elif kind is Kind.WAITING:
            peer.inbox.waits(number)
        elif kind is Kind.SHORT:
            connection.short_messages.append(payload.tobytes())
        elif kind is Kind.LEAVING:
            connection.peer_left()
        connection.repost(slot, kind not in (Kind.CREDIT, Kind.LEAVING))

    def moved(self) -> int:
        """Completed pieces of large messages and one-sided transfers so far."""
        return self._moved

    def _advance_and_test(self, ready: Callable[[], bool]) -> bool:
        self.advance()
        return ready()

    def _block(self, ready: Callable[[], bool], peer: int) -> None:
        wait_until(
            ready,
            self.peers[peer].connection.check,
            self._spins,
            self._context.post,
            peer,
            self._sleep,
            self._yield_ns,
            self.moved,
        )

    def _sleep(self, seconds: float) -> None:
        self.device.arm()
        if not self.advance():
            self.device.sleep(max(seconds, SLEEP_S))

    def _drain(self, deadline: float) -> None:
        while not all(peer.quiet for peer in self.peers.values()) and time.monotonic() < deadline:
            for peer in self.peers.values():
                peer.connection.flush()
            self._sleep(0)


def _depth(device: VerbsDevice, peers: int) -> int:
    """Work requests per queue pair, so that the completion queue has room for all of them; raises TransportError where
    that leaves too few."""
    room = int(device.limits.max_cqe) // max(peers, 1) - MESSAGE_RECEIVES - BULK_QUEUE_PAIRS * BULK_RECEIVES
    depth = min(SEND_DEPTH, int(device.limits.max_qp_wr), room // (1 + BULK_QUEUE_PAIRS))
    if depth < max(MIN_DEPTH, 2 * RESERVE):
        raise TransportError(
            f"the completion queue of {device.address.port.device} holds {device.limits.max_cqe}, "
            f"too few for {peers} peers"
        )
    return depth


def _ignore() -> None:
    """For a completion that nobody waits for."""
