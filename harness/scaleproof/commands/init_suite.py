"""Creates a new suite with comments that runs at once: suite.yaml, claims.yaml, README.md."""

from __future__ import annotations

import argparse
import re
import shutil
from pathlib import Path

from scaleproof.paths import PROJECT

HELP = "make a suite of your own that runs as it is"
EXAMPLE = "scaleproof init suite mine --path ~/suites"

TEMPLATE = PROJECT / "suites" / "_template"
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command to `parser`."""
    parser.add_argument("what", metavar="suite", choices=["suite"], help="the word 'suite'")
    parser.add_argument("name", metavar="NAME", help="small letters, digits and _; also the folder's name")
    parser.add_argument(
        "--path", type=Path, default=Path("suites"), metavar="DIR", help="parent of the new folder (default: ./suites)"
    )


def main(options: argparse.Namespace) -> int:
    """Copy the template under the new name; SpecError if the folder exists."""
    from scaleproof.spec.errors import SpecError

    if not _NAME.fullmatch(options.name):
        raise SpecError(
            f"{options.name!r} is no name for a suite; use small letters, digits and _, beginning with a letter"
        )
    folder = options.path.expanduser() / options.name
    if folder.exists():
        raise SpecError(f"{folder}: exists already")
    draft = folder.with_name(f".{options.name}.draft")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    for source in sorted(TEMPLATE.iterdir()):
        text = source.read_text().replace("suites/_template", str(folder)).replace("_template", options.name)
        (draft / source.name).write_text(text)
    draft.rename(folder)
    print(
        f"{folder} is made; next:\n  scaleproof run {folder} --size ci\n  scaleproof run {folder} --size smoke "
        "--dry-run"
    )
    return 0
