"""Looks after a results folder: lists launches, asks them in SQL, hands them on, takes another machine's in, removes
old ones, converts those of an earlier version.

Which launches: conditions KEY:VALUE behind the command, all of which must hold; several of one key mean any of them.
Keys are all fields of a case (suite, experiment, arm, transport, strategy, workload, ranks, ...), and size, status,
evidence, machine, code, commit, case, launch, since, until, failure, warning, and tag: a value on any axis of
docs/tags.md. Beginnings do for case, launch, code, commit and machine. What is listed comes from an index that is
brought up to date by itself; deleting results/index/ costs time and nothing else."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scaleproof.commands import results_migrate
from scaleproof.commands.common import print_table, results_argument, suites_argument

if TYPE_CHECKING:
    import pyarrow as pa

    from scaleproof.record.index import Index
    from scaleproof.record.rows import Row

HELP = "list, ask, export, merge, prune and migrate records"
EXAMPLE = """scaleproof results list suite:das2016 status:failed since:2026-11-01
  scaleproof results query "SELECT arm, median(throughput) FROM planned WHERE experiment = 'throughput' GROUP BY arm"
  scaleproof results export suite:das2016 size:small --ro-crate das2016.zip
  scaleproof results merge /mnt/other/results
  scaleproof results prune --old-code --failed           shows what would go; --yes removes it
  scaleproof results migrate results                     records of version 0.1 in today's form"""
MANY = 40
"""Rows that a list shows without --limit."""
_COLUMNS = (
    "launch",
    "suite",
    "experiment",
    "arm",
    "size",
    "evidence",
    "status",
    "machine",
    "code",
    "started",
    "wall s",
    "samples",
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare them."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    shown = _action(actions, "list", "launches that meet conditions, newest first, and how many they are")
    _conditions(shown)
    shown.add_argument("--limit", type=int, default=MANY, metavar="N", help=f"rows shown (default: {MANY}; 0: all)")
    shown.add_argument("--json", action="store_true", help="for machines: one JSON object a line, all of them")
    query = _action(actions, "query", "one SQL statement (DuckDB) over tables launches, samples, claims and planned")
    query.add_argument(
        "sql",
        metavar="SQL",
        help="such as \"SELECT status, count(*) FROM launches GROUP BY status\"; 'DESCRIBE launches' lists columns",
    )
    query.add_argument("--json", action="store_true", help="for machines: one JSON object a line")
    export = _action(actions, "export", "chosen launches for other tools and other people")
    _conditions(export)
    form = export.add_mutually_exclusive_group(required=True)
    form.add_argument(
        "--parquet",
        type=Path,
        metavar="DIR",
        help="a new folder with launches, samples, claims and planned as Parquet files",
    )
    form.add_argument("--duckdb", type=Path, metavar="FILE", help="the same as one DuckDB database")
    form.add_argument(
        "--ro-crate",
        type=Path,
        metavar="PATH",
        help="records, tables, verdicts, suites and environment as an RO-Crate: a folder, or PATH.zip",
    )
    suites_argument(export)
    merge = _action(
        actions,
        "merge",
        "take in another results folder: its records, machines/ and stops/; refuses one launch with two contents",
    )
    merge.add_argument("other", type=Path, metavar="OTHER", help="a folder with runs/; it is only read")
    merge.add_argument("--dry-run", action="store_true", help="say what is new and copy nothing")
    prune = _action(actions, "prune", "remove records; only shows what would go unless --yes is given")
    _conditions(prune)
    for name, words in (
        ("old-code", "that ran with other code than this"),
        ("failed", "without status ok"),
        ("unplanned", "in no plan of their suite"),
    ):
        prune.add_argument(f"--{name}", action="append_const", dest="reasons", const=name, help=f"those {words}")
    prune.add_argument(
        "--even-last", action="store_true", help="also the last good launch of a case, which stays otherwise"
    )
    prune.add_argument("--yes", action="store_true", help="remove them")
    suites_argument(prune)
    results_migrate.arguments(actions)


def _action(actions: Any, name: str, words: str) -> argparse.ArgumentParser:
    added: argparse.ArgumentParser = actions.add_parser(
        name, help=words, description=f"{name}: {words}.", allow_abbrev=False
    )
    results_argument(added)
    return added


def _conditions(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "conditions",
        metavar="KEY:VALUE",
        nargs="*",
        help="as in transport:tcp status:ok since:2026-11-01 tag:closed-ring (default: all)",
    )


def main(given: argparse.Namespace) -> int:
    """Do one of the actions."""
    actions = {
        "list": _list,
        "query": _query,
        "export": _export,
        "merge": _merge,
        "prune": _prune,
        "migrate": results_migrate.main,
    }
    actions[given.action](given)
    return 0


def _index(results: Path) -> Index:
    """Of a folder with records; what is none is named on stderr."""
    import sys

    from scaleproof.record.index import Index
    from scaleproof.record.missing_plugins import warning
    from scaleproof.record.read import ignored
    from scaleproof.spec.errors import SpecError

    if not (results / "runs").is_dir():
        raise SpecError(
            f"{results}: no records, since it has no folder 'runs'; --results names another, `scaleproof run` "
            "makes some"
        )
    index = Index(results)
    lines = [ignored(index.runs / case_id / launch, problem) for (case_id, launch), problem in index.problems.items()]
    for line in dict.fromkeys(lines):
        print(f"warning: {line}", file=sys.stderr)
    for kind, name in index.missing_plugins:
        print(f"warning: {warning(kind, name)}", file=sys.stderr)
    return index


def _chosen(given: argparse.Namespace, index: Index) -> pa.Table:
    from scaleproof.results.choose import choose, conditions

    return choose(index.launches, conditions(given.conditions), str(given.results))


def _list(given: argparse.Namespace) -> None:
    found = _chosen(given, _index(given.results)).sort_by([("started_at", "descending")])
    if given.json:
        for row in found.to_pylist():
            print(json.dumps({**row, "fields": json.loads(row["fields"])}))
        return
    shown = found.slice(0, given.limit or len(found)).to_pylist()
    if shown:
        print_table(_COLUMNS, [_row(row) for row in shown])
    left = f" ({len(found) - len(shown)} more rows: --limit 0 shows all)" if len(found) > len(shown) else ""
    print(_summary(found) + left)


def _row(row: Row) -> list[str]:
    status = row["status"] if row["failure"] is None else f"{row['status']}: {row['failure']}"
    evidence = row["evidence"] + (f", excluded: {row['excluded']}" if row["excluded"] else "")
    first = [str(row[name]) for name in ("launch", "suite", "experiment", "arm", "size")]
    return [
        *first,
        evidence,
        status,
        row["machine"],
        row["code"],
        row["started_at"][:19],
        f"{row['wall_s']:.1f}",
        str(row["samples"]),
    ]


def _summary(found: pa.Table) -> str:
    import pyarrow.compute as pc

    if not len(found):
        return "no launches"
    counts = {row["values"]: row["counts"] for row in pc.value_counts(found["status"]).to_pylist()}
    told = ", ".join(
        f"{counts[status]} {words}"
        for status, words in (("ok", "ok"), ("failed", "failed"), ("not_runnable", "not runnable here"))
        if status in counts
    )
    cases, machines = (pc.count_distinct(found[name]).as_py() for name in ("case", "machine"))
    first, last = (pick(found["started_at"]).as_py()[:19] for pick in (pc.min, pc.max))
    words = (
        f"{_count(len(found), 'launch', 'launches')}: {told}; {_count(cases, 'case')}, {_count(machines, 'machine')}"
    )
    return f"{words}, {_count(pc.sum(found['samples']).as_py(), 'sample')}, from {first} to {last}"


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"


def _query(given: argparse.Namespace) -> None:
    from scaleproof.results.views import ask

    columns, rows = ask(given.results, _index(given.results), given.sql)
    if given.json:
        for row in rows:
            print(json.dumps(dict(zip(columns, row, strict=True)), default=str))
    elif columns:
        print_table(columns, [[_cell(cell) for cell in row] for row in rows])


def _cell(value: object) -> str:
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def _export(given: argparse.Namespace) -> None:
    from scaleproof.results.views import views
    from scaleproof.spec.errors import SpecError

    index = _index(given.results)
    chosen = _chosen(given, index)
    if not len(chosen):
        raise SpecError(f"{given.results}: no launch to export")
    tables = views(given.results, index, chosen=chosen)
    if given.ro_crate:
        _crate(given, chosen, tables)
        return
    from scaleproof.results.export import to_duckdb, to_parquet

    if given.parquet:
        to_parquet(tables, given.parquet)
    else:
        to_duckdb(tables, given.duckdb)
    print(
        f"{given.parquet or given.duckdb}: " + ", ".join(f"{name} {len(table)} rows" for name, table in tables.items())
    )


def _crate(given: argparse.Namespace, chosen: pa.Table, tables: dict[str, pa.Table]) -> None:
    import sys

    from scaleproof.commands.common import suites_of
    from scaleproof.results.crate import to_crate

    named = set(chosen["suite"].to_pylist())
    suites = {suite.name: suite for suite in suites_of(None, given.suites) if suite.name in named}
    for name in sorted(named - suites.keys()):
        print(
            f"warning: suite {name!r} is not here (--suites), so the crate holds its records without its "
            "experiments and claims",
            file=sys.stderr,
        )
    count = to_crate(given.results, chosen, tables, suites, given.ro_crate)
    print(f"{given.ro_crate}: RO-Crate of {_count(count, 'launch', 'launches')}, read back whole")


def _merge(given: argparse.Namespace) -> None:
    import sys

    from scaleproof.results.merge import merge

    found = merge(given.results, given.other, given.dry_run)
    for line in found.damaged:
        print(f"warning: {line}; not merged", file=sys.stderr)
    words = "would be new" if given.dry_run else "new"
    print(
        f"{_count(len(found.new), 'launch', 'launches')} {words}, {found.same} here already, {len(found.damaged)} "
        "no records"
    )
    for place in found.beside:
        print(f"  {words}: {place}")
    for place in found.ours:
        print(f"  differs, ours stays: {place}")
    if found.new and not given.dry_run:
        print(
            "tables and verdicts are as they were: `scaleproof collect` and `scaleproof judge` make them anew, "
            "or `snakemake`"
        )


def _prune(given: argparse.Namespace) -> None:
    from scaleproof.commands.common import suites_of
    from scaleproof.results.prune import candidates, remove
    from scaleproof.spec.errors import SpecError
    from scaleproof.spec.units import format_bytes

    reasons: Sequence[str] = given.reasons or ()
    if not reasons and not given.conditions:
        raise SpecError("prune: say which: --old-code, --failed, --unplanned, or conditions KEY:VALUE")
    index = _index(given.results)
    suites = suites_of(None, given.suites) if "unplanned" in reasons else []
    found = candidates(given.results, index.launches, _chosen(given, index), reasons, suites, given.even_last)
    going = [one for one in found if not one.kept]
    if found:
        rows = [
            [*_row(one.row)[:7], ", ".join(one.why), one.kept and f"stays: {one.kept}", "yes" if one.cited else ""]
            for one in found
        ]
        print_table([*_COLUMNS[:7], "why", "", "behind a verdict"], rows)
    size, stays = format_bytes(sum(one.nbytes for one in going)), len(found) - len(going)
    kept = f"; {_count(stays, 'last good launch', 'last good launches')} of a case stay (--even-last)" if stays else ""
    if given.yes:
        print(f"removed {_count(remove(given.results, going), 'launch', 'launches')}, {size}{kept}")
    else:
        print(
            f"would remove {_count(len(going), 'launch', 'launches')}, {size}{kept}"
            + ("; --yes does it" if going else "")
        )
