"""Arguments and output that several commands share."""

from __future__ import annotations

import argparse
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.text import Text

    from scaleproof.launch.nodes.allocated_nodes import AllocatedNodes
    from scaleproof.record.machine import MachineProfile
    from scaleproof.record.store import Store
    from scaleproof.simulate.cost_model import CostModel
    from scaleproof.spec.plugins import Kind
    from scaleproof.spec.suite import Suite


class LaterHelp(str, ABC):
    """The help of an option whose text is made only when help is printed, so that other commands start at once."""

    @abstractmethod
    def text(self) -> str:
        """The text."""


class CaseField(LaterHelp):
    """The help of an option that sets a field of a case, by the field's key: what `scaleproof fields` says of it."""

    def text(self) -> str:
        """The field's description."""
        from scaleproof.spec.field_tables import case_fields, plugin_options

        meaning = next(row.meaning for row in (*case_fields(), *plugin_options()) if row.key == self)
        return f"{meaning[0].lower()}{meaning[1:].removesuffix('.')} (a case's {self})".replace("%", "%%")


class PluginNames(LaterHelp):
    """The help of an option that names a plugin: all names of its kind, those of installed packages too, and a note."""

    kind: Kind

    def __new__(cls, kind: Kind, note: str) -> PluginNames:
        """`note` follows the names."""
        made = super().__new__(cls, note)
        made.kind = kind
        return made

    def text(self) -> str:
        """The names."""
        from scaleproof.spec import registry

        return f"{', '.join(registry.names(self.kind))} {self}".strip()


def suites_argument(parser: argparse.ArgumentParser) -> None:
    """Add --suites, for suites of the user."""
    parser.add_argument(
        "--suites",
        type=Path,
        metavar="DIR",
        help="folder of suites (default: $SCALEPROOF_SUITES, ./suites, the project's own)",
    )


def size_argument(parser: argparse.ArgumentParser) -> None:
    """Add --size, which `size_of` checks."""
    parser.add_argument("--size", default="smoke", metavar="SIZE", help="ci, smoke, small or full (default: smoke)")


def planned_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that choose launches: SUITE, EXPERIMENT, --size, --results, --suites."""
    parser.add_argument("suite", metavar="SUITE", help="a suite's name, or the path of its folder")
    parser.add_argument(
        "experiment", metavar="EXPERIMENT", nargs="?", help="one experiment (default: every one that has this size)"
    )
    size_argument(parser)
    results_argument(parser)
    suites_argument(parser)


def network_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that name a network, of ours or the user's: --workload, --input, --image-side, --width."""
    parser.add_argument(
        "--workload",
        required=True,
        metavar="NAME",
        help="a network of ours (`scaleproof doctor` lists them), or a torch module: package.module:name",
    )
    parser.add_argument(
        "--input",
        metavar="SHAPE",
        help="of one sample of that module: 3x224x224; tokens: int64:128; several: with commas",
    )
    reduced_arguments(parser)


def reduced_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that reduce a network of ours: --image-side, --width."""
    parser.add_argument("--image-side", type=int, metavar="N", help=CaseField("workload.image_side"))
    parser.add_argument("--width", type=float, default=1.0, metavar="F", help=CaseField("workload.width"))


def allocation_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that name the nodes for cases of fabric `host`. Without them these are the nodes of the Slurm job
    around this process, else this machine."""
    parser.add_argument(
        "--hosts",
        default="",
        metavar="A:4,B:4",
        help="nodes with their numbers of ranks, or a file with one node per line ($SCALEPROOF_HOSTS)",
    )
    parser.add_argument(
        "--launcher", default="", metavar="NAME", help="local, srun, ssh, mpirun or torchrun ($SCALEPROOF_LAUNCHER)"
    )
    parser.add_argument(
        "--interface",
        default="",
        metavar="NAME",
        help="network interface of every node, for cases with interface lo ($SCALEPROOF_INTERFACE)",
    )
    parser.add_argument(
        "--rendezvous",
        default="",
        metavar="KIND",
        help="rendezvous of launcher torchrun: static or c10d ($SCALEPROOF_RENDEZVOUS)",
    )


def nodes_of_run(options: argparse.Namespace) -> AllocatedNodes | None:
    """The requested nodes, after each has answered; None: this machine alone. SpecError for an impossible request."""
    import os

    from scaleproof.launch.nodes.allocated_nodes import discover_nodes
    from scaleproof.launch.nodes.requested_nodes import NodeOptions, requested_allocation

    allocation = requested_allocation(
        NodeOptions(options.hosts, options.launcher, options.interface, options.rendezvous), os.environ
    )
    if allocation is None:
        return None
    allocated = discover_nodes(allocation, options.results)
    print(allocated.summary, flush=True)
    return allocated


def results_argument(parser: argparse.ArgumentParser) -> None:
    """Add --results."""
    parser.add_argument(
        "--results", type=Path, default=Path("results"), metavar="DIR", help="folder of records (default: ./results)"
    )


def size_of(options: argparse.Namespace) -> str:
    """The requested size; SpecError with the nearest name if it is unknown."""
    from scaleproof.spec.errors import SpecError
    from scaleproof.spec.registry import nearest
    from scaleproof.spec.suite_form import SIZES

    size: str = options.size
    if size not in SIZES:
        raise SpecError(f"unknown size {size!r}; {nearest(size, list(SIZES))}")
    return size


def print_costs(where: str, costs: CostModel) -> None:
    """Say that a result is simulated, on what, with which costs of messages, and what they assume."""
    print(f"evidence: simulated; {where}; costs of messages {costs.source}")
    for assumption in costs.assumed:
        print(f"  assumed: {assumption}")


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str | Text]], title: str = "") -> None:
    """Print a table: in colour and as wide as the terminal, or as plain text of any width in a file or pipe."""
    draw = _drawn if sys.stdout.isatty() else _plain
    print("\n".join(line.rstrip() for line in draw(columns, rows, title).rstrip().splitlines()) + "\n")


def _drawn(columns: Sequence[str], rows: Sequence[Sequence[str | Text]], title: str) -> str:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title or None, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
    console = Console(highlight=False)
    with console.capture() as rendered:  # rich exits with code 1 if it writes to a closed pipe
        console.print(table)
    return rendered.get()


def _plain(columns: Sequence[str], rows: Sequence[Sequence[str | Text]], title: str) -> str:
    """Draw the table as rich would with unlimited width. Rich takes 0.3 s for a thousand rows; this is faster."""
    from rich.cells import cell_len

    def width(text: str) -> int:
        return len(text) if text.isascii() else cell_len(text)

    cells = [[(cell if isinstance(cell, str) else cell.plain).split("\n") for cell in row] for row in [columns, *rows]]
    cells = [row + [[""]] * (len(columns) - len(row)) for row in cells]
    widths = [max(width(line) for cell in column for line in cell) for column in zip(*cells, strict=True)]
    lines = [title, ""] if title else [""]
    for number, row in enumerate(cells):
        for parts in zip_longest(*row, fillvalue=""):
            lines.append(
                " "
                + "   ".join(part + " " * (column - width(part)) for part, column in zip(parts, widths, strict=True))
            )
        if number == 0:
            lines.append(" " + "─" * (sum(widths) + 3 * len(widths) - 3))
    return "\n".join(lines)


def open_store(results: Path, many: bool = False) -> Store:
    """The records of a results folder. Folders in it that are no records are named on stderr. `many`: use the index,
    for commands that read all records."""
    from scaleproof.record.index import Index
    from scaleproof.record.store import Store

    store = Store(results, lambda text: print(f"warning: {text}", file=sys.stderr), Index(results) if many else None)
    store.check_version()
    return store


def suites_of(name: str | None, suites: Path | None) -> list[Suite]:
    """The suite with this name or folder, or all suites."""
    from scaleproof.spec.suite import list_suites, load_suite

    return (
        [load_suite(name, suites)]
        if name
        else [load_suite(folder.absolute(), suites) for folder in list_suites(suites)]
    )


def profile_of_this_machine(results: Path) -> MachineProfile | None:
    """The profile of the machine on which this process runs, see read_profile."""
    from scaleproof.record.digest import machine_id
    from scaleproof.record.machine import read_profile

    return read_profile(results, machine_id())
