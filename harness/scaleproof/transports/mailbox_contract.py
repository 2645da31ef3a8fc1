"""What a transport may add to its sends, receives, writes and reads for its mailbox."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Protocol, runtime_checkable

from scaleproof.transports.contract import Region


@runtime_checkable
class WatchesPeers(Protocol):
    """Optional, for a transport whose handles do not say in `test` that a peer is gone."""

    def check_peer(self, peer: int) -> None:
        """Raises PeerLost when the peer has ended or has closed its transport."""


@runtime_checkable
class ExposesMemory(Protocol):
    """Optional for a one-sided transport: memory of one rank alone that its peers reach. Regions of mailboxes lie in
    it."""

    def expose(self, nbytes: int) -> Region:
        """A region of this rank, zeroed, until the transport is closed. Raises RegionExhausted."""

    def ticket(self, region: Region) -> Any:
        """What a peer needs to reach an exposed region, as JSON takes it."""

    def reach(self, ticket: Any, peer: int) -> Region:
        """The region of a peer's ticket."""

    def order_writes(self) -> None:
        """Later writes to exposed regions of a rank are seen after all earlier ones."""


@runtime_checkable
class Excluding(Protocol):
    """Optional for a transport that exposes memory: ranks exclude each other without the owner's help."""

    def exclusive(self, owner: int) -> AbstractContextManager[None]:
        """While a rank is inside, no other one is, with the same owner's memory. A rank that dies leaves it."""
