"""An open port of a verbs device: protection domain, the rank's registered region, a completion queue, and the channel
that wakes a sleeping rank."""

from __future__ import annotations

import mmap
import os
import resource
import select
from functools import cache
from types import SimpleNamespace
from typing import Any

from scaleproof.core.transport_errors import TransportError
from scaleproof.fabric.verbs import VerbsAddress
from scaleproof.transports._allocator import Allocator
from scaleproof.transports.verbs.device_errors import DeviceMissing, MemlockTooSmall

BATCH = 32
"""Most completions per poll."""
HUGE_PAGE = 2 << 20


@cache
def library() -> SimpleNamespace:
    """What we use of pyverbs; its constants have another module name since rdma-core 49."""
    import pyverbs.addr
    import pyverbs.cq
    import pyverbs.device
    import pyverbs.mr
    import pyverbs.pd
    import pyverbs.qp
    import pyverbs.wr
    from pyverbs.pyverbs_error import PyverbsError

    try:
        import pyverbs.enums as constants
    except ImportError:
        import pyverbs.libibverbs_enums as constants
    return SimpleNamespace(
        e=constants,
        Error=PyverbsError,
        Context=pyverbs.device.Context,
        PD=pyverbs.pd.PD,
        MR=pyverbs.mr.MR,
        CQ=pyverbs.cq.CQ,
        CompChannel=pyverbs.cq.CompChannel,
        QP=pyverbs.qp.QP,
        QPAttr=pyverbs.qp.QPAttr,
        QPCap=pyverbs.qp.QPCap,
        QPInitAttr=pyverbs.qp.QPInitAttr,
        AHAttr=pyverbs.addr.AHAttr,
        GlobalRoute=pyverbs.addr.GlobalRoute,
        GID=pyverbs.addr.GID,
        SGE=pyverbs.wr.SGE,
        SendWR=pyverbs.wr.SendWR,
        RecvWR=pyverbs.wr.RecvWR,
    )


class VerbsDevice:
    """What a rank's connections share. Closing twice does nothing. Raises DeviceMissing, MemlockTooSmall,
    TransportError."""

    def __init__(self, address: VerbsAddress, region_bytes: int) -> None:
        self.address = address
        self.verbs = verbs = library()
        self._open: list[Any] = []
        try:
            self.context = self._keep(_opened(verbs, address))
            self.limits, self.port = self.context.query_device(), self.context.query_port(address.port.number)
            self.pd = self._keep(verbs.PD(self.context))
            self.area = mmap.mmap(-1, -(-region_bytes // HUGE_PAGE) * HUGE_PAGE)
            self.region = Allocator(self.area, "registered region")
            self.words = memoryview(self.area).cast("Q")
            self.mr = self._keep(self._register())
        except BaseException:
            self.close()
            raise

    def open_queue(self, entries: int) -> None:
        """The completion queue of all queue pairs."""
        before = _channels()
        self.channel = self._keep(self.verbs.CompChannel(self.context))
        # pyverbs does not expose the channel's descriptor, and its own wait has no time limit.
        (self._channel_fd,) = _channels() - before
        self.cq = self._keep(self.verbs.CQ(self.context, entries, None, self.channel))

    @property
    def max_message(self) -> int:
        """Bytes that one work request may move."""
        return int(self.port.max_msg_sz)

    @property
    def mtu(self) -> int:
        """The port's path MTU, as the enum of verbs counts it."""
        return int(self.port.active_mtu)

    def poll(self) -> list[Any]:
        """Completions that have arrived, at most a batch."""
        count, completions = self.cq.poll(BATCH)
        return completions[:count] if count else []

    def arm(self) -> None:
        """Let the next completion wake `sleep`. The caller must poll once more before it sleeps."""
        self.cq.req_notify()

    def sleep(self, seconds: float) -> None:
        """Sleep until a completion arrives or the time is over."""
        if select.select([self._channel_fd], [], [], seconds)[0]:
            self.channel.get_cq_event(self.cq)
            self.cq.ack_events(1)

    def close(self) -> None:
        """Destroy everything in reverse order; queue pairs must be destroyed before. Arrays in the region stay
        valid."""
        while self._open:
            self._open.pop().close()

    def _keep(self, made: Any) -> Any:
        self._open.append(made)
        return made

    def _register(self) -> Any:
        e = self.verbs.e
        access = e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ
        try:
            return self.verbs.MR(self.pd, self.region.nbytes, access, address=self.region.address)
        except self.verbs.Error as error:
            limit = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
            if limit != resource.RLIM_INFINITY and limit < self.region.nbytes:
                raise MemlockTooSmall(
                    f"a region of {self.region.nbytes} bytes cannot be registered: "
                    f"the limit on locked memory (RLIMIT_MEMLOCK) is {limit} bytes"
                ) from error
            raise TransportError(f"a region of {self.region.nbytes} bytes cannot be registered: {error}") from error


def free_bytes(ranks: int) -> int:
    """Bytes that a rank registers unless its case sets them: a quarter of the machine's memory, shared by its `ranks`,
    at most 1 GiB each."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min(physical // 4 // ranks, 1 << 30)


def _opened(verbs: SimpleNamespace, address: VerbsAddress) -> Any:
    try:
        return verbs.Context(name=address.port.device)
    except verbs.Error as error:
        raise DeviceMissing(
            f"the verbs device {address.port.device!r} is listed by the kernel and cannot be opened: {error}"
        ) from error


def _channels() -> set[int]:
    """Descriptors of this process that are completion channels."""
    return {int(name) for name in os.listdir("/proc/self/fd") if "infinibandevent" in _target(name)}


def _target(descriptor: str) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:  # the listing's own descriptor
        return ""
