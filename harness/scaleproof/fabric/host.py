"""The network of this machine as it is: nothing to set up, nothing to tear down."""

from __future__ import annotations

import socket

import psutil

from scaleproof.fabric.verbs import netdev, ports
from scaleproof.spec.common_case import CommonCase
from scaleproof.spec.errors import FieldError, SpecError
from scaleproof.spec.plugins import FabricPlugin
from scaleproof.spec.registry import nearest


class Host:
    """Ranks are processes of this machine and bind to the address of one of its interfaces."""

    evidence = "measured"

    def __init__(self, interface: str) -> None:
        self.interface = interface

    def obstacle(self, case: CommonCase | None = None) -> tuple[str, str] | None:
        """Reason why ranks cannot run here, and what to do; None if no reason is known."""
        try:
            self.address()
        except SpecError as error:
            return (
                str(error),
                "key `interface` of the case names one of this machine's interfaces or a verbs device: "
                "`scaleproof doctor` lists both",
            )
        return None

    def address(self) -> str:
        """The interface's IPv4 address; SpecError names the nearest interface or verbs port, or all that exist."""
        interfaces, name = psutil.net_if_addrs(), netdev(self.interface)
        if name not in interfaces:
            names = [*sorted(interfaces), *(port.name for port in ports())]
            raise SpecError(f"unknown interface {self.interface!r}; {nearest(self.interface, names)}")
        addresses = [entry.address for entry in interfaces[name] if entry.family == socket.AF_INET]
        if not addresses:
            raise SpecError(f"interface {self.interface!r} has no IPv4 address")
        return addresses[0]


def loopback_problem() -> str:
    """Reason why the loopback interface cannot be used; empty if it can."""
    state = psutil.net_if_stats().get("lo")
    return "" if state and state.isup else "interface lo is down"


def check(case: CommonCase) -> None:
    """Raises FieldError for several nodes, since this machine is one node."""
    if case.nodes != 1:
        message = "fabric 'host' is this machine with the network it has; use 'netns', 'guests' or 'simulated'"
        raise FieldError("nodes", message)


PLUGIN = FabricPlugin(
    name="host",
    summary="the network of this machine as it is",
    implementation=Host,
    check_installation=loopback_problem,
    check=check,
)
