"""What a record says of a rank's verbs device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scaleproof.transports.verbs.peer_connection import BULK_QUEUE_PAIRS
from scaleproof.transports.verbs.verbs_device import VerbsDevice


def facts(device: VerbsDevice, operations: Mapping[str, int], copies: Mapping[str, int]) -> dict[str, Any]:
    """For the record: the port, the device's operations, and the bytes that were copied."""
    address = device.address
    return {
        "device": address.port.device,
        "port": address.port.number,
        "link_layer": address.port.link_layer,
        "software": address.port.software,
        "gid": address.gid.value if address.gid else "",
        "gid_kind": address.gid.kind if address.gid else "",
        "netdevs": list(address.port.netdevs),
        "queue_pairs_per_peer": 1 + BULK_QUEUE_PAIRS,
        "region_bytes": device.region.nbytes,
        "max_message_bytes": device.max_message,
        "operations": dict(operations),
        "copied_bytes": dict(copies),
    }


def library_name(device: VerbsDevice) -> str:
    """Name and version of what moves the bytes."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        installed = version("pyverbs")
    except PackageNotFoundError:
        installed = "of the system"
    return f"scaleproof rdma, pyverbs {installed}" + (" (a software device)" if device.address.port.software else "")
