"""A link with a delay for kernels without netem: a tap at either end, and a process that forwards every frame after the
delay.

Frames are moved in the segments that the kernel writes to a tap (IFF_VNET_HDR), so that one read moves up to 64 KiB."""

from __future__ import annotations

import ctypes
import fcntl
import os
import select
import struct
import sys
import time
from collections import deque
from contextlib import suppress
from pathlib import Path

from scaleproof.fabric.netns import namespaces
from scaleproof.fabric.topology import LinkEnd

DEVICE = Path("/dev/net/tun")
FRAMES = 10000
"""Segments that a tap queues for the process."""
_TUNSETIFF, _TUNSETOFFLOAD, _SIOCSIFHWADDR = 0x400454CA, 0x400454D0, 0x8924
_TAP, _NO_HEADER, _VNET = 0x0002, 0x1000, 0x4000
_CHECKSUM, _TSO4, _TSO6, _ECN = 1, 2, 4, 8
_ETHERNET = 1
_PR_SET_TIMERSLACK = 29
_LONGEST = (1 << 16) + 64
"""Bytes of a segment with the tap's header."""
_AT_ONCE = 64
"""Segments read from one end before the other end is read."""
_PRIORITY = -15


def start(ends: tuple[LinkEnd, LinkEnd], delay_ms: float, pids: list[int]) -> int:
    """Makes both taps in their namespaces and forks the process between them, which ends with the coordinator. Returns
    its process id. Raises RuntimeError if taps cannot be made."""
    reading, writing = os.pipe()
    if (process := os.fork()) == 0:
        try:
            os.close(reading)
            taps = [_tap(end, None if end.node is None else pids[end.node]) for end in ends]
            os.write(writing, b"+")
            os.close(writing)
            with suppress(PermissionError):
                os.nice(_PRIORITY)
            ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)
            _forward(taps[0], taps[1], round(delay_ms * 1e6))
        except OSError as error:
            print(f"relay between {ends[0].vertex} and {ends[1].vertex}: {error}", file=sys.stderr, flush=True)
        finally:
            os._exit(1)
    os.close(writing)
    with os.fdopen(reading, "rb") as answer:
        if answer.read(1) != b"+":
            raise RuntimeError(
                f"no delay between {ends[0].vertex} and {ends[1].vertex}: "
                "this kernel has no netem, and no tap could be made"
            )
    return process


def _tap(end: LinkEnd, process: int | None) -> int:
    """An open tap whose interface is in a process's network namespace (None: in this process's namespace)."""
    own_namespace = os.open("/proc/self/ns/net", os.O_RDONLY)
    if process is not None:
        namespace = os.open(f"/proc/{process}/ns/net", os.O_RDONLY)
        namespaces.enter(namespace)
        os.close(namespace)
    tap = os.open(DEVICE, os.O_RDWR | os.O_NONBLOCK)
    name = struct.pack("16sH22x", end.interface.encode(), _TAP | _NO_HEADER | _VNET)
    fcntl.ioctl(tap, _TUNSETIFF, name)
    fcntl.ioctl(tap, _TUNSETOFFLOAD, _CHECKSUM | _TSO4 | _TSO6 | _ECN)
    fcntl.ioctl(
        tap,
        _SIOCSIFHWADDR,
        struct.pack("16sH6s16x", end.interface.encode(), _ETHERNET, bytes.fromhex(end.mac.replace(":", ""))),
    )
    namespaces.enter(own_namespace)
    os.close(own_namespace)
    return tap


def _forward(first: int, second: int, delay_ns: int) -> None:
    """Forwards segments for ever. A segment that an end refuses is lost, as on a full link."""
    queues: dict[int, tuple[int, deque[tuple[int, bytes]]]] = {first: (second, deque()), second: (first, deque())}
    clock = time.monotonic_ns
    while True:
        due = min((waiting[0][0] for _, waiting in queues.values() if waiting), default=None)
        # select has a resolution of a microsecond, epoll only of a millisecond
        ready = select.select([first, second], (), (), None if due is None else max(due - clock(), 0) / 1e9)[0]
        for source in ready:
            waiting = queues[source][1]
            with suppress(BlockingIOError):
                for _ in range(_AT_ONCE):
                    piece = os.read(source, _LONGEST)
                    waiting.append((clock() + delay_ns, piece))
        now = clock()
        for target, waiting in queues.values():
            while waiting and waiting[0][0] <= now:
                with suppress(OSError):  # full, or set down
                    os.write(target, waiting[0][1])
                waiting.popleft()
