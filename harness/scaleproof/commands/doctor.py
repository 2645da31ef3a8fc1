"""Shows which plugins and tools work on this machine: transports, strategies, fabrics, launchers and the rest. If one
does not work, it says why and what to do."""

from __future__ import annotations

import argparse
import dataclasses
import json
from typing import Any

from scaleproof.commands.common import print_table, results_argument

HELP = "what works on this machine; if not, why and what to do"
EXAMPLE = "scaleproof doctor --json"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare them."""
    parser.add_argument("--json", action="store_true", help="for machines: one JSON object on stdout")
    parser.add_argument(
        "--import",
        dest="import_libraries",
        action="store_true",
        help="also import every library, each in a process of its own (seconds)",
    )
    parser.add_argument(
        "--clean",
        action="store_true",
        help="end and remove what dead launches left: processes, guests, shared memory, folders",
    )
    results_argument(parser)


def main(given: argparse.Namespace) -> int:
    """Always 0: an absent plugin is a result, not a failure."""
    from scaleproof.doctor.hardware import machine, verbs_ports
    from scaleproof.doctor.leftovers import leftovers, remove_leftovers
    from scaleproof.doctor.survey import survey

    if given.clean:
        print(
            "\n".join(["removed:", *remove_leftovers(given.results)])
            if leftovers(given.results)
            else "no leftovers of dead launches"
        )
        return 0
    findings, here, left = survey(given.import_libraries), machine(given.results), leftovers(given.results)
    if given.json:
        print(
            json.dumps(
                {
                    "machine": here,
                    "verbs": verbs_ports(),
                    "names": [dataclasses.asdict(row) for row in findings],
                    "leftovers": left,
                },
                indent=2,
            )
        )
        return 0
    rows = [[row.kind, row.name, "yes" if row.available else "no", row.version, row.summary] for row in findings]
    print_table(["kind", "name", "available", "library", "what it is"], rows)
    absent = [row for row in findings if not row.available]
    if absent:
        print_table(
            ["absent", "why", "what to do"], [[f"{row.kind} {row.name}", row.why, row.advice] for row in absent]
        )
    print(_machine_line(here))
    print(_verbs_lines(verbs_ports()))
    print(_leftover_lines(left))
    return 0


def _machine_line(here: dict[str, Any]) -> str:
    from scaleproof.spec.units import format_bytes

    memory, free, disk = (
        format_bytes(here[name]) for name in ("memory_bytes", "memory_available_bytes", "disk_free_bytes")
    )
    software = f"Linux {here['kernel']}, Python {here['python']}"
    return (
        f"machine: {here['cores']} cores ({here['processor']}), {memory} memory, {free} of it free, {disk} free "
        f"for results, {software}"
    )


def _verbs_lines(found: list[dict[str, Any]]) -> str:
    if not found:
        return "verbs devices: none, the kernel lists no RDMA card; fabric `guests` brings soft-RoCE"
    lines = []
    for port in found:
        software, interfaces = ", software" if port["software"] else "", ", ".join(port["netdevs"]) or "no interface"
        lines.append(f"  {port['name']}: {port['link_layer']}, {port['state']}, {interfaces}{software}")
        lines += [
            f"    GID {gid['index']}: {gid['value']} {gid['kind']} {gid['netdev']}".rstrip() for gid in port["gids"]
        ]
    return "\n".join(["verbs devices:", *lines])


def _leftover_lines(left: list[dict[str, str]]) -> str:
    lines = [
        f"  {item['kind']} {item['what']}{' (launch ' + item['launch'] + ')' if item['launch'] else ''}: "
        f"{item['advice']}"
        for item in left
    ]
    return "\n".join([f"leftovers of dead launches: {len(left) or 'none'}", *lines])
