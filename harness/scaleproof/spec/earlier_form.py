"""Cases as version 0.1 wrote them, all fields flat: where each of those that belong to a plugin stands now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scaleproof.spec.plugins import Kind

MOVED: Mapping[str, Kind | str] = {
    "fusion_mib": "transport",
    "region_mib": "transport",
    "guest": "fabric",
    "link_mbit": "fabric",
    "link_delay_ms": "fabric",
    "cluster": "fabric",
    "node_cores": "fabric",
    "costs": "fabric",
    "bucket_mib": "strategy",
    "mechanism": "strategy",
    "servers": "strategy",
    "groups": "strategy",
    "communication": "strategy",
    "channels": "strategy",
    "bucket_order": "strategy",
    "forward_waits": "strategy",
    "image_side": "workload",
    "width": "workload",
    "data": "workload",
    "profile": "compute",
    "efficiency": "compute",
}
"""Earlier field to the field that it is nested under."""


def advice(key: str) -> str:
    """What to write in place of an earlier field; empty for any other key."""
    field = MOVED.get(key)
    return f"is an option of the {field} now: write {field}: {{{key}: ...}}, or {field}.{key}" if field else ""


def converted(values: Mapping[str, Any]) -> dict[str, Any]:
    """The flat case of an earlier record with dotted keys; options that its plugin does not have are left out when the
    case is parsed."""
    return {f"{MOVED[key]}.{key}" if key in MOVED else key: value for key, value in values.items()}
