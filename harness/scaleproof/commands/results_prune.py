"""`scaleproof results prune`: removes records, or shows which ones would be removed."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from scaleproof.commands.common import print_table, suites_argument, suites_of
from scaleproof.commands.results_common import (
    COLUMNS,
    add_action,
    chosen_launches,
    counted,
    launch_row,
    open_index,
)

if TYPE_CHECKING:
    from scaleproof.results.prune import Candidate

_SHOWN_COLUMNS = 7
"""The first columns of a launch's row: enough to recognise it."""


def arguments(actions: Any) -> None:
    """Add the action and its arguments to those of `scaleproof results`."""
    parser = add_action(
        actions, "prune", "remove records; only shows what would go unless --yes is given", conditions=True
    )
    for reason, meaning in (
        ("old-code", "whose code has changed since"),
        ("failed", "without status ok"),
        ("unplanned", "in no plan of their suite"),
    ):
        parser.add_argument(f"--{reason}", action="append_const", dest="reasons", const=reason, help=f"those {meaning}")
    parser.add_argument(
        "--even-last", action="store_true", help="also the last good launch of a case, which stays otherwise"
    )
    parser.add_argument("--yes", action="store_true", help="remove them")
    suites_argument(parser)


def main(options: argparse.Namespace) -> None:
    """List the candidates; with --yes remove those that nothing keeps."""
    from scaleproof.results.prune import candidates, remove
    from scaleproof.spec.errors import SpecError
    from scaleproof.spec.units import format_bytes

    reasons: Sequence[str] = options.reasons or ()
    if not reasons and not options.conditions:
        raise SpecError("prune: say which: --old-code, --failed, --unplanned, or conditions KEY:VALUE")
    index = open_index(options.results)
    suites = suites_of(None, options.suites) if "unplanned" in reasons else []
    chosen = chosen_launches(options, index)
    records = candidates(options.results, index.launches, chosen, reasons, suites, options.even_last)
    if records:
        print_table([*COLUMNS[:_SHOWN_COLUMNS], "why", "", "behind a verdict"], [_row(record) for record in records])
    removable = [record for record in records if not record.kept_because]
    size, kept = format_bytes(sum(record.nbytes for record in removable)), len(records) - len(removable)
    remark = f"; {counted(kept, 'last good launch', 'last good launches')} of a case stay (--even-last)" if kept else ""
    if options.yes:
        print(f"removed {counted(remove(options.results, removable), 'launch', 'launches')}, {size}{remark}")
    else:
        advice = "; --yes does it" if removable else ""
        print(f"would remove {counted(len(removable), 'launch', 'launches')}, {size}{remark}{advice}")


def _row(record: Candidate) -> list[str]:
    return [
        *launch_row(record.row)[:_SHOWN_COLUMNS],
        ", ".join(record.why),
        record.kept_because and f"stays: {record.kept_because}",
        "yes" if record.cited else "",
    ]
