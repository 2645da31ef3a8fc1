"""No processes at all: the simulator predicts what a launch on the case's cluster would record."""

from __future__ import annotations


class Simulated:
    """Nothing to set up."""

    evidence = "simulated"

    def __init__(self, interface: str) -> None:
        self.interface = interface

    def address(self) -> str:
        """Empty: nobody connects."""
        return ""

    def obstacle(self) -> tuple[str, str] | None:
        """None: what a case lacks (a profile, a cluster) the simulator says itself."""
        return None
