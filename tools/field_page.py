"""`python -m tools.field_page`: writes docs/fields.md from the descriptions in the forms of cases and of a suite's
files."""

from __future__ import annotations

from pathlib import Path

from scaleproof.commands.fields import CASE, FILES, tables
from scaleproof.spec.field_tables import FieldRow

PAGE = Path(__file__).resolve().parents[1] / "docs" / "fields.md"
HEAD = """# Fields of a suite's files

This page lists what a suite's files may say. `python -m tools.field_page` generates it from the harness;
`scaleproof fields` prints the fields of a case, and `scaleproof fields --file suite.yaml` those of a file.
[add_a_suite.md](add_a_suite.md) shows how the files are put together,
[verdicts.md](verdicts.md) what each rule accepts.

A key after a dot is inside the mapping of the key before it: `experiments.sizes.launches` is the key `launches` of each
size of each experiment. A field without a default must be given wherever the mapping around it is given. In the table
of a case's fields the column "of" names programs, in that of options it names plugins; `null` is YAML's.
"""


def page() -> str:
    """The page's text."""
    groups = [group for file in (CASE, *FILES) for group in tables(file).items()]
    return "\n".join([HEAD, *(_section(title, rows) for title, rows in groups)])


def _section(title: str, rows: list[FieldRow]) -> str:
    owned = any(row.owners for row in rows)
    columns = ["field", *(["of"] if owned else []), "default", "meaning"]
    lines = [f"## {title}\n", f"| {' | '.join(columns)} |", "|" + "---|" * len(columns)]
    for row in rows:
        owners = ", ".join(f"`{name}`" for name in row.owners) or "all"
        meaning = f"{row.meaning} One of: {', '.join(row.choices)}." if row.choices else row.meaning
        cells = [f"`{row.key}`", *([owners] if owned else []), row.default, meaning.replace("|", "\\|")]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the page."""
    PAGE.write_text(page())


if __name__ == "__main__":
    main()
