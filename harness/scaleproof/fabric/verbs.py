"""Verbs devices of this machine as the kernel lists them, and the port that `interface:` selects. Opens nothing and
needs no library."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from scaleproof.spec.errors import SpecError

CLASS = Path("/sys/class")
DEVICES = "infiniband"
ETHERNET = "Ethernet"
ROUTABLE = "RoCE v2"
"""The GID type whose frames are UDP; an Ethernet port also lists GIDs of type `IB/RoCE v1`."""
NOTHING = "0000:0000:0000:0000:0000:0000:0000:0000"


@dataclass(frozen=True, slots=True)
class Gid:
    """An entry of a port's GID table: its address, how it is sent (`RoCE v2`, `IB/RoCE v1`) and the network interface
    that it belongs to."""

    index: int
    value: str
    kind: str
    netdev: str

    @property
    def ipv4(self) -> str:
        """The IPv4 address mapped in the GID; empty if there is none."""
        groups = self.value.split(":")
        if groups[:6] != ["0000"] * 5 + ["ffff"]:
            return ""
        return ".".join(str(byte) for byte in bytes.fromhex("".join(groups[6:])))


@dataclass(frozen=True, slots=True)
class Port:
    """One port of a device. `lid`: its address on InfiniBand, 0 on Ethernet."""

    device: str
    number: int
    state: str
    link_layer: str
    lid: int
    gids: tuple[Gid, ...]
    netdevs: tuple[str, ...]
    software: bool
    """Whether the device is emulated: soft-RoCE or soft-iWARP over a network interface."""

    @property
    def name(self) -> str:
        """Name of the port in a case."""
        return f"{self.device}:{self.number}"

    @property
    def active(self) -> bool:
        """Whether it can carry traffic."""
        return self.state == "ACTIVE"


@dataclass(frozen=True, slots=True)
class VerbsAddress:
    """Address of a rank's queue pairs: a port, and the GID they send from (None: an InfiniBand port without one,
    addressed by LID)."""

    port: Port
    gid: Gid | None


def ports(root: Path = CLASS) -> list[Port]:
    """Every port of every verbs device, sorted by name."""
    all_ports = []
    for device in sorted((root / DEVICES).glob("*")):
        for folder in sorted((device / "ports").glob("*"), key=lambda path: int(path.name)):
            gids = _gids(folder)
            netdevs = tuple(
                dict.fromkeys(
                    [gid.netdev for gid in gids if gid.netdev] + _netdevs_above(root, device.name, int(folder.name))
                )
            )
            state = _read(folder / "state").partition(":")[2].strip()
            lid = int(_read(folder / "lid") or "0", 16)
            all_ports.append(
                Port(
                    device.name,
                    int(folder.name),
                    state,
                    _read(folder / "link_layer"),
                    lid,
                    gids,
                    netdevs,
                    "virtual" in device.resolve().parts,
                )
            )
    return all_ports


def choose(interface: str, address: str = "", root: Path = CLASS) -> VerbsAddress:
    """The port and GID for `interface`: a network interface (`eth0`), or a device, optionally with port and GID index
    (`mlx5_0`, `mlx5_0:1`, `mlx5_0:1:3`).

    `address`: the IPv4 address that the GID should map. Raises SpecError that lists the existing ports.
    """
    all_ports = ports(root)
    device, _, rest = interface.partition(":")
    number, _, index = rest.partition(":")
    if any(port.device == device for port in all_ports):
        matching = [port for port in all_ports if port.device == device and number in ("", str(port.number))]
    else:
        matching = [port for port in all_ports if interface in port.netdevs]
        index = ""
    if not matching:
        raise SpecError(f"no verbs device on interface {interface!r}; {listed(all_ports)}")
    active = [port for port in matching if port.active]
    if not active:
        raise SpecError(
            f"port {matching[0].name} on interface {interface!r} is {matching[0].state or 'in an unknown state'}, "
            f"not ACTIVE; {listed(all_ports)}"
        )
    return _address_on(active[0], interface, index, address)


def listed(all_ports: list[Port]) -> str:
    """All ports on one line, for error messages."""
    if not all_ports:
        return "this machine has no verbs device"
    return "ports here: " + ", ".join(
        f"{port.name} ({port.link_layer}, {port.state}, {'/'.join(port.netdevs) or 'no interface'})"
        for port in all_ports
    )


def netdev(interface: str, root: Path = CLASS) -> str:
    """The network interface of the device or port `interface` (`lo` for an InfiniBand port without one); `interface`
    itself if it is no device or port."""
    matching = [
        port for port in ports(root) if interface in (port.device, port.name) or interface.startswith(f"{port.name}:")
    ]
    named = [name for port in matching for name in port.netdevs]
    if named:
        return named[0]
    return "lo" if matching else interface


def _address_on(port: Port, interface: str, index: str, address: str) -> VerbsAddress:
    gids = [gid for gid in port.gids if gid.netdev == interface or interface not in port.netdevs]
    table = ", ".join(f"{gid.index} {gid.value} ({gid.kind})" for gid in port.gids) or "none"
    if index:
        gids = [gid for gid in gids if str(gid.index) == index]
        if not gids:
            raise SpecError(f"port {port.name} has no GID with index {index}; its GIDs: {table}")
    if port.link_layer != ETHERNET:
        return VerbsAddress(port, gids[0] if gids else None)
    routable = [gid for gid in gids if gid.kind == ROUTABLE]
    exact = [gid for gid in routable if gid.ipv4 and gid.ipv4 == address]
    fourth = [gid for gid in routable if gid.ipv4]
    best = exact or fourth or routable or (gids if index else [])
    if not best:
        raise SpecError(f"port {port.name} has no {ROUTABLE} GID for interface {interface!r}; its GIDs: {table}")
    return VerbsAddress(port, best[0])


def _gids(folder: Path) -> tuple[Gid, ...]:
    gids = []
    for path in sorted((folder / "gids").glob("*"), key=lambda path: int(path.name)):
        value = _read(path)
        if value and value != NOTHING:
            attributes = folder / "gid_attrs"
            gids.append(
                Gid(
                    int(path.name),
                    value,
                    _read(attributes / "types" / path.name),
                    _read(attributes / "ndevs" / path.name),
                )
            )
    return tuple(gids)


def _netdevs_above(root: Path, device: str, port: int) -> list[str]:
    """Network interfaces of an InfiniBand port, whose GIDs name no interface."""
    names = []
    for interface in sorted((root / "net").glob("*")):
        number = _read(interface / "dev_port")
        if (interface / "device" / DEVICES / device).exists() and (not number or int(number) + 1 == port):
            names.append(interface.name)
    return names


def _read(path: Path) -> str:
    """Content of a kernel file; empty if it cannot be read (like an unused GID entry)."""
    try:
        return path.read_text().strip()
    except OSError:
        return ""
