"""Constants of NCCL 2.30.7 (NVIDIA/nccl@5067397c, src/graph/tuning.cc, search.cc, topo.h): us and GB/s. NCCL selects an
algorithm by them; they are no measurements."""

from __future__ import annotations

from typing import Literal

from scaleproof.spec.gpu_node import Architecture

Algorithm = Literal["ring", "tree", "nvls", "nvls_tree"]
Protocol = Literal["LL", "LL128", "Simple"]
Hop = Literal["nvlink", "pcie", "network"]
PROTOCOLS: tuple[Protocol, ...] = ("LL", "LL128", "Simple")

NVLINK_GB_PER_S: dict[Architecture, float] = {"volta": 20.0, "ampere": 20.0, "hopper": 20.6, "blackwell": 40.1}
"""Of each link and direction."""
NETWORK_GB_PER_GBIT = 0.12
"""12 GB/s for 100 Gb/s."""
CHANNEL_GB_PER_S: dict[Architecture, tuple[float, ...]] = {
    "volta": (40, 30, 20, 18, 15, 12, 10),
    "ampere": (40, 30, 20, 18, 15, 12, 10),
    "hopper": (60, 50, 40, 30, 24, 20),
    "blackwell": (90, 80, 70, 60, 50, 45, 40),
}
"""Rates that the search tries for a channel inside a node."""

BASE_US: dict[Algorithm, tuple[float, float, float]] = {
    "tree": (6.8, 14.0, 8.4),
    "ring": (6.6, 14.0, 8.4),
    "nvls": (0.0, 0.0, 0.0),
    "nvls_tree": (0.0, 0.0, 0.0),
}
HOP_US: dict[Hop, dict[Algorithm, tuple[float, float, float]]] = {
    "nvlink": {
        "tree": (0.6, 1.25, 4.0),
        "ring": (0.6, 1.9, 3.4),
        "nvls": (0.0, 0.0, 25.0),
        "nvls_tree": (0.0, 0.0, 25.0),
    },
    "pcie": {"tree": (1.0, 1.9, 4.0), "ring": (1.0, 2.5, 5.7)},
    "network": {
        "tree": (5.0, 8.5, 14.0),
        "ring": (2.7, 4.0, 14.0),
        "nvls": (0.0, 0.0, 18.0),
        "nvls_tree": (0.0, 0.0, 20.9),
    },
}
"""Of one hop, in the order of PROTOCOLS."""
POST_US = 1.0
"""Least latency of a hop inside a node of a ring over several nodes (with an Intel CPU), three times that for
Simple."""
LL_SHARE, LL128_SHARE = 0.5, 0.92
LL_MOST: dict[Architecture, tuple[float, float, float]] = {
    "volta": (39.0, 39.0, 20.4),
    "ampere": (87.7, 22.5, 19.0),
    "hopper": (141.0, 45.0, 35.0),
    "blackwell": (282.0, 90.0, 70.0),
}
"""GB/s of a ring with LL, on one, two and more nodes."""
LL128_CHANNEL: dict[Architecture, float] = {"volta": 20.0, "ampere": 20.0, "hopper": 36.7, "blackwell": 40.0}
TREE_SHARE, TREE_LL_SHARE = 0.92, 1 / 3.8
TREE_LL128_SHARE = {True: 7 / 9, False: 120 / 128}
"""On one node; on several."""
TREE_CHANNEL: dict[Architecture, tuple[float, float, float]] = {
    "volta": (26.5, 18.5, 10.0),
    "ampere": (24.0, 23.6, 17.8),
    "hopper": (38.7, 41.4, 36.0),
    "blackwell": (70.0, 42.8, 24.0),
}
"""GB/s of a channel of a tree, on one, two and more nodes."""
TREE_CORRECTION = (
    *(0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.8, 0.7, 0.6, 0.6, 0.5),
    *(0.5, 0.5, 0.5, 0.6, 0.7, 0.8, 0.7, 0.7, 0.8, 0.9, 0.9, 0.9),
)
"""Factor on a tree's bandwidth with Simple, by power of two from 64 B."""
NVLS_SHARE: dict[Architecture, float] = {"volta": 0.0, "ampere": 0.0, "hopper": 0.85, "blackwell": 0.74}
"""Share of the links that reductions in the switch reach; 0: the switch cannot reduce."""
RING_PLATEAU = {"volta": 1.9, "ampere": 1.4, "hopper": 1.4, "blackwell": 1.4}
"""Factor on the latency of an all-reduce by a ring with Simple over several nodes, from PLATEAU_NBYTES a rank and
channel on."""
PLATEAU_NBYTES = 64
