"""All links of a rank: set up through the rendezvous, advanced by whoever waits, taken down without a trace."""

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
from scaleproof.transports.verbs.one_sided_transfers import OneSided
from scaleproof.transports.verbs.peer_connection import BULK_LANES, BULK_RECEIVES, RECEIVES, SEND_DEPTH, Link
from scaleproof.transports.verbs.send_receive import Inbox, Outbox
from scaleproof.transports.verbs.verbs_device import Device

if TYPE_CHECKING:
    from scaleproof.core.context import RankContext

LEAVE_S = 4.0
"""At most, for what is under way to be acknowledged before the queue pairs go: as long as a silent peer is asked."""
NAP_S = 0.05
"""How long a rank sleeps on the completion channel, which wakes it, before it looks whether the peer is still there."""
LEAST_DEPTH = 16


class Peer:
    """One link and what travels on it."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self.outbox, self.inbox, self.one_sided = Outbox(link), Inbox(link), OneSided(link)

    @property
    def quiet(self) -> bool:
        """Whether nothing is under way any more that has been asked for and can still be done."""
        return self.link.quiet and (self.link.lost is not None or self.one_sided.empty)

    def push(self) -> None:
        """Post what can be posted."""
        if self.link.lost is None:
            self.link.push()
            self.inbox.push()
            self.outbox.push()
            self.one_sided.push()


class Mesh:
    """`operations`: work requests by opcode, their bytes, and probes; `copies`: bytes that this rank copied on their
    way, by reason."""

    def __init__(self, context: RankContext, device: Device, local_ranks: int) -> None:
        self.device = device
        self.operations: Counter[str] = Counter()
        self.copies: Counter[str] = Counter()
        self._context = context
        self._spins = (
            CROWDED_SPINS if device.place.port.software or local_ranks > len(os.sched_getaffinity(0)) else SPINS
        )
        # The core on which a software device would work is better given away at once.
        self._yield_ns = 0 if device.place.port.software else YIELD_NS
        self.peers: dict[int, Peer] = {}
        self._by_number: dict[int, tuple[Peer, int]] = {}
        self._moved = 0

    def connect(self) -> None:
        """A queue pair for every lane of every peer, ready on both sides when this returns."""
        context, others = (
            self._context,
            [peer for peer in range(self._context.world_size) if peer != self._context.rank],
        )
        depth = _depth(self.device, len(others))
        self.device.open_queue(max(len(others), 1) * ((1 + BULK_LANES) * depth + RECEIVES + BULK_LANES * BULK_RECEIVES))
        for peer in others:
            link = Link(
                self.device, peer, depth, (self.operations, self.copies), self.advance, partial(self._block, peer=peer)
            )
            self.peers[peer] = Peer(link)
            self._by_number |= {lane.number: (self.peers[peer], index) for index, lane in enumerate(link.lanes)}
        port, gid = self.device.place.port, self.device.place.gid
        own = {
            "base": self.device.region.address,
            "key": self.device.mr.rkey,
            "lid": port.lid,
            "gid": gid.value if gid else "",
            "mtu": self.device.mtu,
        }
        own["links"] = {str(peer): known.link.describe() for peer, known in self.peers.items()}
        places = context.rendezvous.exchange("rdma.place", context.rank, context.world_size, own)
        for peer, known in self.peers.items():
            known.link.connect(
                places[peer], places[peer]["links"][str(context.rank)], min(self.device.mtu, places[peer]["mtu"])
            )
        context.rendezvous.exchange("rdma.ready", context.rank, context.world_size, True)

    def advance(self) -> bool:
        """Take completions and move what can move; True when a completion was there."""
        found = self.device.poll()
        for completion in found:
            self._completed(completion)
        for peer in self.peers.values():
            peer.push()
        return bool(found)

    def wait_for(self, ready: Callable[[], bool], rank: int) -> None:
        """Return when `ready()`, which may look at memory, whose change wakes nobody: sleeps are short."""
        check, turned = self.peers[rank].link.check, partial(self._turned, ready)
        wait_until(turned, check, self._spins, self._context.post, rank, yield_ns=self._yield_ns, moved=self._moves)

    def raise_lost(self, rank: int) -> None:
        """What broke the link to a rank."""
        lost = self.peers[rank].link.lost
        if lost:
            raise lost

    def close(self) -> None:
        """Have everything that is under way acknowledged, tell the peers, destroy everything."""
        links, deadline = [peer.link for peer in self.peers.values()], time.monotonic() + LEAVE_S
        self._drain(deadline)
        for link in links:
            if link.may_say(paid=False):
                link.say(Kind.LEAVING, done=_nothing)
        self._drain(deadline)
        self.release()

    def release(self) -> None:
        """Destroy everything as it stands."""
        for peer in self.peers.values():
            peer.link.close()
        self.peers = {}
        self.device.close()

    def _completed(self, completion: Any) -> None:
        peer, index = self._by_number[completion.qp_num]
        self._moved += index > 0  # the first lane has the asking for signs of life, which is no progress
        link, token = peer.link, completion.wr_id >> 1
        if completion.status:
            if completion.status != FLUSHED or link.lost is None:
                link.fail(failure(completion.status, link.peer, completion.vendor_err))
        elif not completion.wr_id & 1:
            link.lanes[index].retire(token)
        elif index:
            link.expect(index - 1)
            peer.inbox.filled(index - 1, unpack(socket.ntohl(completion.imm_data))[2])
        else:
            self._said(peer, token, completion)

    def _said(self, peer: Peer, slot: int, completion: Any) -> None:
        kind, credits, number = unpack(socket.ntohl(completion.imm_data))
        link, payload = peer.link, peer.link.arrived(slot, completion.byte_len)
        link.credits.got(credits)
        if kind is Kind.DATA:
            peer.inbox.arrived(number, payload)
        elif kind is Kind.GRANT:
            peer.outbox.granted(payload)
        elif kind is Kind.WAITING:
            peer.inbox.waits(number)
        elif kind is Kind.NOTE:
            link.notes.append(payload.tobytes())
        elif kind is Kind.LEAVING:
            link.left()
        link.again(slot, kind not in (Kind.CREDIT, Kind.LEAVING))

    def _moves(self) -> int:
        """Pieces of large messages and of the device's operations so far."""
        return self._moved

    def _turned(self, ready: Callable[[], bool]) -> bool:
        self.advance()
        return ready()

    def _block(self, ready: Callable[[], bool], peer: int) -> None:
        wait_until(
            ready,
            self.peers[peer].link.check,
            self._spins,
            self._context.post,
            peer,
            self._nap,
            self._yield_ns,
            self._moves,
        )

    def _nap(self, seconds: float) -> None:
        self.device.arm()
        if not self.advance():
            self.device.sleep(max(seconds, NAP_S))

    def _drain(self, deadline: float) -> None:
        while not all(peer.quiet for peer in self.peers.values()) and time.monotonic() < deadline:
            for peer in self.peers.values():
                peer.link.flush()
            self._nap(0)


def _depth(device: Device, peers: int) -> int:
    """Work requests per queue pair, so that no completion is lost when all are under way; raises TransportError where
    that leaves too few."""
    room = int(device.limits.max_cqe) // max(peers, 1) - RECEIVES - BULK_LANES * BULK_RECEIVES
    depth = min(SEND_DEPTH, int(device.limits.max_qp_wr), room // (1 + BULK_LANES))
    if depth < max(LEAST_DEPTH, 2 * RESERVE):
        raise TransportError(
            f"the completion queue of {device.place.port.device} holds {device.limits.max_cqe}, too few for {peers} peers"
        )
    return depth


def _nothing() -> None:
    """Nobody waits."""
