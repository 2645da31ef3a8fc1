"""Shows which plugins and tools work on this machine: transports, strategies, fabrics, launchers and the rest. For
those that do not work, it prints the reason and what to do."""

from __future__ import annotations

import argparse
import dataclasses
import json
from typing import TYPE_CHECKING, Any

from scaleproof.commands.common import print_table, results_argument

if TYPE_CHECKING:
    from scaleproof.doctor.survey import Finding

HELP = "what works on this machine; if not, why and what to do"
EXAMPLE = "scaleproof doctor --json"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command to `parser`."""
    parser.add_argument("--json", action="store_true", help="for machines: one JSON object on stdout")
    parser.add_argument(
        "--import",
        dest="import_libraries",
        action="store_true",
        help="also import every library, each in its own process (seconds)",
    )
    parser.add_argument(
        "--clean",
        action="store_true",
        help="end and remove leftovers of dead launches: processes, guests, shared memory, folders",
    )
    results_argument(parser)


def main(options: argparse.Namespace) -> int:
    """Always 0: an absent plugin is a result, not a failure."""
    from scaleproof.doctor.hardware import machine, verbs_ports
    from scaleproof.doctor.leftovers import leftovers
    from scaleproof.doctor.survey import survey

    if options.clean:
        return _clean(options)
    findings, hardware = survey(options.import_libraries), machine(options.results)
    ports, remains = verbs_ports(), leftovers(options.results)
    if options.json:
        values = {
            "machine": hardware,
            "verbs": ports,
            "names": [dataclasses.asdict(finding) for finding in findings],
            "leftovers": remains,
        }
        print(json.dumps(values, indent=2))
        return 0
    _print_findings(findings)
    print(_machine_line(hardware))
    print(_verbs_lines(ports))
    print(_leftover_lines(remains))
    return 0


def _clean(options: argparse.Namespace) -> int:
    from scaleproof.doctor.leftovers import leftovers, remove_leftovers

    if leftovers(options.results):
        print("\n".join(["removed:", *remove_leftovers(options.results)]))
    else:
        print("no leftovers of dead launches")
    return 0


def _print_findings(findings: list[Finding]) -> None:
    """A table of all names, and one of the absent ones with reason and advice."""
    rows = [
        [finding.kind, finding.name, "yes" if finding.available else "no", finding.version, finding.summary]
        for finding in findings
    ]
    print_table(["kind", "name", "available", "library", "what it is"], rows)
    absent = [finding for finding in findings if not finding.available]
    if absent:
        rows = [[f"{finding.kind} {finding.name}", finding.why, finding.advice] for finding in absent]
        print_table(["absent", "why", "what to do"], rows)


def _machine_line(hardware: dict[str, Any]) -> str:
    from scaleproof.spec.units import format_bytes

    memory, free, disk = (
        format_bytes(hardware[name]) for name in ("memory_bytes", "memory_available_bytes", "disk_free_bytes")
    )
    return (
        f"machine: {hardware['cores']} cores ({hardware['processor']}), {memory} memory, {free} of it free, "
        f"{disk} free for results, Linux {hardware['kernel']}, Python {hardware['python']}"
    )


def _verbs_lines(ports: list[dict[str, Any]]) -> str:
    if not ports:
        return "verbs devices: none, the kernel lists no RDMA card; fabric `guests` brings soft-RoCE"
    lines = []
    for port in ports:
        software, interfaces = ", software" if port["software"] else "", ", ".join(port["netdevs"]) or "no interface"
        lines.append(f"  {port['name']}: {port['link_layer']}, {port['state']}, {interfaces}{software}")
        lines += [
            f"    GID {gid['index']}: {gid['value']} {gid['kind']} {gid['netdev']}".rstrip() for gid in port["gids"]
        ]
    return "\n".join(["verbs devices:", *lines])


def _leftover_lines(remains: list[dict[str, str]]) -> str:
    lines = [
        f"  {item['kind']} {item['what']}{' (launch ' + item['launch'] + ')' if item['launch'] else ''}: "
        f"{item['advice']}"
        for item in remains
    ]
    return "\n".join([f"leftovers of dead launches: {len(remains) or 'none'}", *lines])
