"""Rates of emulated links: what a shaped link counts, and how much of it is payload."""

from __future__ import annotations

MTU = 1500
"""Bytes of the largest IP packet on a link."""
FRAME = MTU + 14
"""Bytes of the largest frame as the kernel counts it: with its Ethernet header, without what only a wire adds
(preamble, checksum and gap: 24 bytes)."""
PAYLOAD = (MTU - 52) / FRAME
"""Share of TCP payload in the bytes that a shaped link counts. Headers of IP, of TCP and its timestamps: 20, 20 and 12
bytes."""
BURST_S = 0.001
"""Burst of a shaped link: seconds at its rate, but at least two frames."""


def bytes_per_s(mbit: float) -> float:
    """The wire rate of a link in bytes per second."""
    return mbit * 1e6 / 8


def burst(mbit: float) -> int:
    """Bytes of the token bucket of a link with this rate, which pass at once after a pause."""
    return max(2 * FRAME, round(bytes_per_s(mbit) * BURST_S))


def least_transmit_s(nbytes: float, mbit: float) -> float:
    """Least time in s in which a shaped link passes so many bytes of TCP payload: headers take their part of the rate,
    and a full bucket passes at once."""
    return max(nbytes / PAYLOAD - burst(mbit), 0.0) / bytes_per_s(mbit)
