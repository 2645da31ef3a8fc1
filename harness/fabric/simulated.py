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
        """Why the simulator cannot predict here; None when nothing is known to stand against it."""
        return "this version does not simulate launches yet", "use fabric 'guests'"
