"""Errors between ranks, with the failure codes of the record."""

from __future__ import annotations


class TransportError(RuntimeError):
    """An operation of a transport failed; `code` is a failure code of the record."""

    code = "transport_error"


class PeerLost(TransportError):
    """The connection to a peer is lost; `peer` is its rank (-1: unknown)."""

    code = "peer_lost"

    def __init__(self, peer: int, message: str) -> None:
        super().__init__(message)
        self.peer = peer


class MessageTooLarge(TransportError):
    """A message is longer than the transport can move in one piece."""

    code = "message_too_large"
