"""Byte and packet counters of the network interfaces, and whether the requested one carried the traffic."""

from __future__ import annotations

import os
from pathlib import Path

Counters = dict[str, dict[str, int]]
NOTICED = 1 << 20
"""Bytes: below this, background traffic of the machine hides what a launch sent."""


def read_counters(process: int | str = "self") -> Counters:
    """Received and sent bytes and packets of every interface in a process's namespace, from /proc/PID/net/dev."""
    counters: Counters = {}
    for line in Path(f"/proc/{process}/net/dev").read_text().splitlines()[2:]:
        name, _, numbers = line.partition(":")
        fields = [int(number) for number in numbers.split()]
        counters[name.strip()] = {
            "rx_bytes": fields[0],
            "rx_packets": fields[1],
            "tx_bytes": fields[8],
            "tx_packets": fields[9],
        }
    return counters


def network_namespace() -> str:
    """Inode of this process's network namespace: processes with the same one share interfaces and counters."""
    return str(os.stat("/proc/self/ns/net").st_ino)


def difference(before: Counters, after: Counters) -> Counters:
    """What was added in between."""
    return {
        name: {key: value - before.get(name, {}).get(key, 0) for key, value in counters.items()}
        for name, counters in after.items()
    }


def sent(before: Counters, after: Counters) -> dict[str, int]:
    """Bytes that each interface sent in between."""
    return {name: counters["tx_bytes"] for name, counters in difference(before, after).items()}
