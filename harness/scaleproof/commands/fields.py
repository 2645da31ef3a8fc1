"""Shows what a suite's files may say: each field with its default and its meaning."""

from __future__ import annotations

import argparse
import json
import shutil
import textwrap
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scaleproof.spec.field_tables import FieldRow

HELP = "what a suite's files may say: fields, options of plugins, their meaning"
EXAMPLE = "scaleproof fields strategy"
CASE = "case"
FILES = ("suite.yaml", "claims.yaml", "figures.yaml", "published.yaml")
MOST_COLUMNS = 120


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command to `parser`."""
    parser.add_argument(
        "key",
        metavar="KEY",
        nargs="?",
        help="one field with its options, as strategy or strategy.servers (default: all)",
    )
    parser.add_argument(
        "--file",
        default=CASE,
        metavar="FILE",
        help=f"case (the fields of a case, in suite.yaml), {', '.join(FILES)} (default: case)",
    )
    parser.add_argument(
        "--schema", action="store_true", help="print the JSON Schema of a whole file (default: suite.yaml), for editors"
    )


def main(options: argparse.Namespace) -> int:
    """Print the fields, or a schema."""
    from scaleproof.spec.errors import SpecError
    from scaleproof.spec.registry import nearest

    if options.file not in (CASE, *FILES):
        raise SpecError(f"--file: unknown file {options.file!r}; {nearest(options.file, [CASE, *FILES])}")
    if options.schema and options.key:
        raise SpecError("--schema prints the schema of a whole file; leave out KEY")
    if options.schema:
        print(json.dumps(schema("suite.yaml" if options.file == CASE else options.file), indent=1))
        return 0
    groups = tables(options.file)
    if options.key:
        groups = {title: [row for row in rows if _matches(row, options.key)] for title, rows in groups.items()}
        if not any(groups.values()):
            raise SpecError(f"unknown field {options.key!r}; {_advice(options.key, options.file)}")
    for title, rows in groups.items():
        if rows:
            print(f"{title}\n")
            print("\n".join(map(_described, rows)) + "\n")
    return 0


def _advice(key: str, file: str) -> str:
    """Another file that has this field, or the nearest name in this one."""
    from scaleproof.spec.registry import nearest

    having = [
        other for other in (CASE, *FILES) for rows in tables(other).values() if any(_matches(row, key) for row in rows)
    ]
    if having:
        return f"--file {having[0]} has it"
    return nearest(key, [row.key for rows in tables(file).values() for row in rows])


def tables(file: str) -> dict[str, list[FieldRow]]:
    """The fields of a file, or of a case, under the titles of their groups."""
    from scaleproof.spec.field_tables import case_fields, form_fields, plugin_options

    if file == CASE:
        return {"Fields of a case": case_fields(), "Options of plugins": plugin_options()}
    return {file: form_fields(_form(file))}


def schema(file: str) -> dict[str, Any]:
    """The JSON Schema of a whole file."""
    from pydantic import TypeAdapter

    from scaleproof.spec.suite_schema import suite_schema

    if file == "suite.yaml":
        return suite_schema()
    form = _form(file)
    entries: dict[str, Any] = TypeAdapter(list[form]).json_schema()  # type: ignore[valid-type]
    if file != "published.yaml":
        return entries
    definitions = entries.pop("$defs")
    return {"type": "object", "required": ["rows"], "properties": {"rows": entries}, "$defs": definitions}


def _form(file: str) -> Any:
    from scaleproof.claims.claim_form import ClaimForm, PublishedRow
    from scaleproof.report.headlines.form import FigureForm
    from scaleproof.spec.suite_form import SuiteForm

    return {
        "suite.yaml": SuiteForm,
        "claims.yaml": ClaimForm,
        "figures.yaml": FigureForm,
        "published.yaml": PublishedRow,
    }[file]


def _matches(row: FieldRow, key: str) -> bool:
    return f".{key}." in f".{row.key}."


def _described(row: FieldRow) -> str:
    head = f"  {row.key}" + (f" (default: {row.default})" if row.default else " (must be given)")
    head += f"  of {', '.join(row.owners)}" if row.owners else ""
    choices = f" One of: {', '.join(row.choices)}." if row.choices else ""
    columns = min(MOST_COLUMNS, shutil.get_terminal_size().columns)
    return (
        head + "\n" + textwrap.fill(row.meaning + choices, columns, initial_indent=" " * 6, subsequent_indent=" " * 6)
    )
