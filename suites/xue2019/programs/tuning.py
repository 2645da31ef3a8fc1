"""Settings of gRPC in use, for the record of every launch; those that were tried are the launches of experiment
`tuning`."""

from __future__ import annotations

from typing import Any

from scaleproof.core.context import RankContext
from scaleproof.spec.case import OwnCase

SETTINGS = ("window_kib", "frame_kib", "chunk_kib")


def apply(context: RankContext, case: OwnCase) -> None:
    """Applies the settings in the case's options, before the transport connects. Records the settings in use."""
    used: dict[str, Any] = {}
    if case.transport == "grpc":
        used = _grpc({name: int(case.options[name]) for name in SETTINGS if name in case.options})
    context.facts["tuning"] = {"in_use": used}


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
