"""A node's answer to discovery."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import psutil

from scaleproof.launch.nodes.discovery import NodeAnswer, answer_line, sees_shared_folder
from scaleproof.launch.teardown import remove_abandoned_scratch
from scaleproof.record.digest import code_digest, machine_id
from scaleproof.record.host import boot_id


def answer_discovery(header: dict[str, Any], number: int) -> None:
    """Print one line, after removing what killed agents left on this node."""
    remove_abandoned_scratch()
    addresses = {
        name: entry.address
        for name, entries in psutil.net_if_addrs().items()
        for entry in reversed(entries)
        if entry.family == socket.AF_INET
    }
    host = header["hosts"][number]
    answer = NodeAnswer(
        host=host,
        boot=boot_id(),
        machine=machine_id(),
        cores=sorted(os.sched_getaffinity(0)),
        interfaces=addresses,
        own=_own_interface(host, addresses),
        code=code_digest(),
        shared=sees_shared_folder(header, number),
    )
    print(answer_line(answer, number), flush=True)


def _own_interface(host: str, addresses: dict[str, str]) -> str:
    """The interface with the address of the node's name, else that of the default route."""
    for name in (host.rpartition("@")[2], socket.gethostname()):
        try:
            of_name = {entry[4][0] for entry in socket.getaddrinfo(name, None, socket.AF_INET)}
        except OSError:
            continue
        for interface, address in addresses.items():
            if address in of_name and not address.startswith("127."):
                return interface
    try:
        routes = [line.split() for line in Path("/proc/net/route").read_text().splitlines()[1:]]
    except OSError:
        return ""
    return next((fields[0] for fields in routes if fields[1] == "00000000" and fields[0] in addresses), "")


def node_number(header: dict[str, Any], option: int | None) -> int:
    """This node's number among the hosts: by the option, else by the name that Slurm gives the node."""
    if option is not None:
        return option
    hosts: list[str] = header["hosts"]
    name = os.environ.get("SLURMD_NODENAME") or socket.gethostname()
    if name not in hosts:
        raise SystemExit(f"node {name} is none of {', '.join(hosts)}")
    return hosts.index(name)
