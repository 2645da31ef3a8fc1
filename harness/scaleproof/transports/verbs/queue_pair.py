"""One reliable-connected queue pair: work requests in order, few of them signalled, and callbacks at their
completion."""

from __future__ import annotations

import secrets
import socket
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Any

from scaleproof.core.transport_errors import TransportError
from scaleproof.fabric.verbs import ETHERNET
from scaleproof.transports.verbs.device_errors import MessageTooLarge, QueueOverflow
from scaleproof.transports.verbs.verbs_device import VerbsDevice

SIGNAL_EVERY = 8
"""A work request that nobody waits for is signalled after this many that were not; its completion frees their entries
in the queue."""
TIMEOUT, RETRIES, RNR_RETRIES, RNR_TIMER = 17, 6, 6, 12
"""4.096 us * 2^17 = 537 ms without an answer, then 6 retries: a peer that is gone is noticed within 4 s, and a peer on
a busy machine is not treated as lost. 7 retries mean endless ones. A peer without a receive request is retried after
0.64 ms, 6 times."""
INLINE = 256
"""Bytes that a work request may carry itself, where the device allows it: they need no registered memory and may change
at once."""
HOPS = 64
ENOMEM = 12
Piece = tuple[int, int]
"""Address and bytes of one part of a message."""


class QueuePair:
    """A queue pair to one peer. `posted` and `retired` count the work requests that were posted and that are known to
    be done."""

    def __init__(self, device: VerbsDevice, depth: int, receives: int, operations: Counter[str]) -> None:
        verbs = device.verbs
        self._device, self._verbs, self._e = device, verbs, verbs.e
        self.depth, self.receives = depth, receives
        self.posted = self.retired = 0
        self._signalled = -1
        self._callbacks: deque[tuple[int, Callable[[], None]]] = deque()
        self._operations = operations
        self._names = {
            self._e.IBV_WR_SEND_WITH_IMM: "send",
            self._e.IBV_WR_RDMA_WRITE: "write",
            self._e.IBV_WR_RDMA_WRITE_WITH_IMM: "write_with_imm",
            self._e.IBV_WR_RDMA_READ: "read",
        }
        self._qp, self.inline = self._create(depth, receives)
        self.number = int(self._qp.qp_num)
        self._psn = secrets.randbits(24)

    @property
    def room(self) -> int:
        """Work requests that can be posted now."""
        return self.depth - (self.posted - self.retired)

    @property
    def unsignalled(self) -> bool:
        """Whether requests were posted whose completion will not be reported."""
        return self.posted - 1 > self._signalled

    def describe(self) -> list[int]:
        """What the peer needs to know: queue pair number and first packet number."""
        return [self.number, self._psn]

    def connect(self, theirs: Sequence[int], lid: int, gid: str, mtu: int) -> None:
        """Change to ready-to-send towards the peer's queue pair; raises TransportError when the peer's address cannot
        be reached from this port."""
        verbs, address = self._verbs, self._device.address
        attributes = verbs.QPAttr(port_num=address.port.number)
        attributes.dest_qp_num, attributes.rq_psn = theirs
        attributes.sq_psn, attributes.path_mtu = self._psn, mtu
        attributes.max_rd_atomic = attributes.max_dest_rd_atomic = min(16, self._device.limits.max_qp_rd_atom)
        attributes.min_rnr_timer, attributes.timeout, attributes.retry_cnt, attributes.rnr_retry = (
            RNR_TIMER,
            TIMEOUT,
            RETRIES,
            RNR_RETRIES,
        )
        attributes.qp_access_flags = (
            self._e.IBV_ACCESS_LOCAL_WRITE | self._e.IBV_ACCESS_REMOTE_WRITE | self._e.IBV_ACCESS_REMOTE_READ
        )
        attributes.ah_attr = self._route(lid, gid)
        try:
            self._qp.to_rts(attributes)
        except verbs.Error as error:
            raise TransportError(
                f"no route from {address.port.name} to the peer's address {gid or lid}: {error}"
            ) from error

    def post(
        self,
        opcode: int,
        pieces: Sequence[Piece],
        remote: tuple[int, int] | None = None,
        imm: int = 0,
        callback: Callable[[], None] | None = None,
    ) -> int:
        """Post one work request and return its number. `remote`: address and key; `callback` is called when the
        completion arrives. Small requests go inline: their memory is free when this returns. Raises QueueOverflow,
        MessageTooLarge."""
        nbytes = sum(size for _, size in pieces)
        if self.room <= 0:
            raise QueueOverflow(f"queue pair {self.number} holds {self.depth} work requests, all of them are under way")
        if nbytes > self._device.max_message:
            raise MessageTooLarge(
                f"a message of {nbytes} bytes is longer than the {self._device.max_message} bytes "
                f"that {self._device.address.port.name} moves"
            )
        number = self.posted
        signalled = callback is not None or number - self._signalled >= SIGNAL_EVERY
        flags = (self._e.IBV_SEND_SIGNALED if signalled else 0) | (
            self._e.IBV_SEND_INLINE if self.goes_inline(opcode, nbytes) else 0
        )
        key = self._device.mr.lkey
        # pyverbs requires at least one part, also for an empty message.
        parts = [self._verbs.SGE(address, size, key) for address, size in pieces if size] or [
            self._verbs.SGE(self._device.region.address, 0, key)
        ]
        request = self._verbs.SendWR(
            wr_id=number << 1, opcode=opcode, num_sge=len(parts), imm_data=socket.htonl(imm), sg=parts, send_flags=flags
        )
        if remote is not None:
            request.set_wr_rdma(remote[1], remote[0])
        self._submit(request)
        self.posted += 1
        self._operations[self._names[opcode]] += 1
        self._operations[f"{self._names[opcode]} bytes"] += nbytes
        if signalled:
            self._signalled = number
        if callback is not None:
            self._callbacks.append((number, callback))
        return number

    def goes_inline(self, opcode: int, nbytes: int) -> bool:
        """Whether a message of so many bytes is carried by its work request."""
        return 0 < nbytes <= self.inline and opcode != self._e.IBV_WR_RDMA_READ

    def retire(self, number: int) -> None:
        """Process the completion of a work request: it and all before it are done."""
        self.retired = number + 1
        while self._callbacks and self._callbacks[0][0] <= number:
            self._callbacks.popleft()[1]()

    def receive(self, slot: int, address: int, nbytes: int) -> None:
        """Post a receive request; `slot` comes back with its completion."""
        part = self._verbs.SGE(address, nbytes, self._device.mr.lkey)
        self._qp.post_recv(self._verbs.RecvWR(wr_id=slot << 1 | 1, num_sge=1, sg=[part]))

    def close(self) -> None:
        """Destroy the queue pair; what is under way is lost."""
        self._qp.close()

    def _submit(self, request: Any) -> None:
        try:
            self._qp.post_send(request)
        except self._verbs.Error as error:
            if getattr(error, "error_code", 0) == ENOMEM:
                raise QueueOverflow(
                    f"queue pair {self.number} takes no more work requests, {self.posted - self.retired} are under way"
                ) from error
            raise TransportError(f"queue pair {self.number} takes no work request: {error}") from error

    def _create(self, depth: int, receives: int) -> tuple[Any, int]:
        """The queue pair and its inline bytes: as many as the device allows, up to INLINE."""
        verbs, inline = self._verbs, INLINE
        while True:
            cap = verbs.QPCap(
                max_send_wr=depth, max_recv_wr=receives, max_send_sge=2, max_recv_sge=1, max_inline_data=inline
            )
            initial = verbs.QPInitAttr(
                qp_type=self._e.IBV_QPT_RC, scq=self._device.cq, rcq=self._device.cq, cap=cap, sq_sig_all=0
            )
            try:
                queue_pair = verbs.QP(self._device.pd, initial)
            except verbs.Error as error:
                if not inline:
                    raise TransportError(f"no queue pair on {self._device.address.port.name}: {error}") from error
                inline //= 2
                continue
            return queue_pair, int(queue_pair.query(self._e.IBV_QP_CAP)[1].cap.max_inline_data)

    def _route(self, lid: int, gid: str) -> Any:
        verbs, address = self._verbs, self._device.address
        if address.port.link_layer != ETHERNET or address.gid is None:
            return verbs.AHAttr(port_num=address.port.number, dlid=lid, is_global=0)
        route = verbs.GlobalRoute(dgid=verbs.GID(gid), sgid_index=address.gid.index, hop_limit=HOPS)
        return verbs.AHAttr(port_num=address.port.number, is_global=1, gr=route)
