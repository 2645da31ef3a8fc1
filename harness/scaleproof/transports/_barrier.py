"""A barrier for any point-to-point transport."""

from __future__ import annotations

import numpy as np

from scaleproof.transports.contract import PointToPoint


def dissemination(transport: PointToPoint) -> None:
    """ceil(lg p) rounds; in round k every rank sends an empty message to the rank 2^k to its right."""
    distance = 1
    while distance < transport.world_size:
        arrival = transport.recv(np.empty(0, np.uint8), (transport.rank - distance) % transport.world_size)
        transport.send(np.empty(0, np.uint8), (transport.rank + distance) % transport.world_size).wait()
        arrival.wait()
        distance *= 2
