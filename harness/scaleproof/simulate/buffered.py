"""Bytes that a connection of a case's transport takes before its receiver reads."""

from __future__ import annotations

from scaleproof.spec.case import AnyCase
from scaleproof.spec.common_case import NATIVE
from scaleproof.strategies.parameter_server_step import SOCKET


def buffered_nbytes(case: AnyCase) -> float:
    """None where a library's own collectives move the bytes: how they wait for each other is not known."""
    if case.transport is None or not case.plugin("transport").eager_to_socket:
        return 0.0
    return float(SOCKET) if case.collective != NATIVE or case.program in ("own", "transfer") else 0.0
