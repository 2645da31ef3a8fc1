"""Nodes as network namespaces of this machine: a small cluster with set rates and delays."""

from __future__ import annotations

from harness.fabric.plan import INTERFACE


class Netns:
    """Ranks are processes in namespaces that a keeper makes for the launch."""

    evidence = "emulated"

    def __init__(self, interface: str) -> None:
        self.interface = interface

    def address(self) -> str:
        """Empty: a rank learns its node's address from its node."""
        return ""

    def obstacle(self) -> tuple[str, str] | None:
        """Why no such nodes can be made here, and what to do; None when nothing is known to stand against it."""
        if self.interface != INTERFACE:
            return f"nodes of fabric netns have no interface {self.interface!r}", f"leave `interface` out, or name {INTERFACE!r}"
        return "this version does not build namespaces yet", "use fabric 'guests'"
