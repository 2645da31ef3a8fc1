"""Base of the fabrics whose nodes a coordinator makes for each launch."""

from __future__ import annotations

from typing import ClassVar

from scaleproof.fabric.guests.guest_plan import INTERFACE


class EmulatedNodes:
    """Nodes with one interface each, whose addresses are known once they are made."""

    evidence = "emulated"
    fabric: ClassVar[str]

    def __init__(self, interface: str) -> None:
        self.interface = interface

    def address(self) -> str:
        """Empty: a rank learns its node's address from its node."""
        return ""

    def wrong_interface(self) -> tuple[str, str] | None:
        """Reason and advice where the nodes have no such interface; None where they have it."""
        if self.interface == INTERFACE:
            return None
        return (
            f"nodes of fabric {self.fabric} have no interface {self.interface!r}",
            f"leave `interface` out, or name {INTERFACE!r}",
        )
