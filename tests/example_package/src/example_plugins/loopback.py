"""A fabric: this machine's loopback and nothing else."""

from __future__ import annotations

from scaleproof.spec.common_case import CommonCase
from scaleproof.spec.plugins import FabricPlugin


class Loopback:
    """Nothing to set up, nothing to tear down."""

    evidence = "measured"

    def __init__(self, interface: str) -> None:
        self.interface = interface

    def address(self) -> str:
        """What ranks bind."""
        return "127.0.0.1"

    def obstacle(self, case: CommonCase | None = None) -> tuple[str, str] | None:
        """None: it can always run."""
        return None


PLUGIN = FabricPlugin(name="loopback", summary="this machine's loopback", implementation=Loopback)
