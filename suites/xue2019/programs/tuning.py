"""Settings of gRPC that were tried, and those that an arm uses, for the record of every launch."""

from __future__ import annotations

from typing import Any

from scaleproof.core.context import RankContext
from scaleproof.spec.case import OwnCase

TRIED = {
    "grpc": (
        "window 1, 4 and 16 MiB; HTTP/2 frames of 16 KiB and of 16 MiB; chunks of 64 KiB, 256 KiB, 1 MiB and 4 MiB; "
        "message size limits lifted: experiment `tuning`"
    ),
}
"""By transport; other transports have no settings, or record them by themselves (TensorFlow's runtime)."""
SETTINGS = ("window_kib", "frame_kib", "chunk_kib")
COUNT = {"grpc": 8}


def apply(context: RankContext, case: OwnCase) -> None:
    """Applies the settings in the case's options, before the transport connects. Records the settings in use and how
    many were tried."""
    used: dict[str, Any] = {}
    if case.transport == "grpc":
        used = _grpc({name: int(case.options[name]) for name in SETTINGS if name in case.options})
    name = str(case.transport)
    context.facts["tuning"] = {
        "in_use": used,
        "settings_tried": COUNT.get(name, 0),
        "tried": TRIED.get(name, "nothing to set"),
    }


def _grpc(requested: dict[str, int]) -> dict[str, Any]:
    """Our gRPC transport reads its settings from its modules."""
    from scaleproof.transports import _grpc_streams, grpc

    options = dict(grpc.OPTIONS)
    if "window_kib" in requested:
        options["grpc.http2.lookahead_bytes"] = requested["window_kib"] << 10
    if "frame_kib" in requested:
        options["grpc.http2.max_frame_size"] = min(requested["frame_kib"] << 10, (1 << 24) - 1)
    if "chunk_kib" in requested:
        _grpc_streams.CHUNK = requested["chunk_kib"] << 10
    grpc.OPTIONS = tuple(options.items())  # type: ignore[assignment]
    return {**options, "chunk_bytes": _grpc_streams.CHUNK}
