"""`python -m tools.reference pack|pages|readme`: keeps one finished run in results/reference/ and makes the README's
picture and tables from it.

pack [ARCHIVE]              results/ -> results/reference/: verdicts and runs as text, raw records as one archive
pages [ARCHIVE] [--picture] the archive -> reports/reference/index.html; --picture: docs/report.png too, for a release
readme                      results/reference/ -> the tables between the markers of README.md
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import tarfile
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from scaleproof.claims.claims_file import STANDING_WORDS

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = ROOT / "results" / "reference"
SIZE = "smoke"
KINDS = {"published": ("claim", "paper"), "our own": ("claim", "own"), "consistency": ("consistency", None)}
PARTS = ("runs", "tables", "claims", "machines", "stops")
ARCHIVE = REFERENCE / f"{SIZE}.tar.xz"
"""Raw records, tables, verdicts and the machine's profile of all suites."""
CLAIMS = REFERENCE / f"{SIZE}.claims.json"
RUNS = REFERENCE / f"{SIZE}.runs.csv"


def pack(archive: Path = ARCHIVE) -> None:
    """Keep what `snakemake` left in results/ and reports/."""
    REFERENCE.mkdir(parents=True, exist_ok=True)
    with tarfile.open(archive, "w:xz", preset=9) as target:
        for part in PARTS:
            if (ROOT / "results" / part).exists():
                target.add(ROOT / "results" / part, part, filter=_without_owner)
    shutil.copy(ROOT / "reports" / "claims.json", CLAIMS)
    shutil.copy(ROOT / "reports" / "runs.csv", RUNS)


def _without_owner(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def unpack(into: Path, archive: Path = ARCHIVE) -> None:
    """The reference run as a results folder."""
    if not archive.exists():
        raise SystemExit(f"{archive}: no such archive; the raw records of a reference run are a file of the release")
    with tarfile.open(archive) as source:  # extraction filters came with Python 3.11.4, Debian 12 has 3.11.2
        plain = [member for member in source if member.isfile() or member.isdir()]
        assert not any(Path(member.name).is_absolute() or ".." in Path(member.name).parts for member in plain), (
            "an archive of ours stays in its folder"
        )
        source.extractall(into, members=plain)


def pages(archive: Path = ARCHIVE, with_picture: bool = False) -> None:
    """Build the report of the reference run; `with_picture`: also the README's picture of it."""
    from scaleproof.report.build import build
    from scaleproof.report.picture import picture
    from scaleproof.spec.suite import list_suites, load_suite

    with tempfile.TemporaryDirectory(prefix="scaleproof-reference-") as name:
        unpack(Path(name), archive)
        index = build(
            Path(name),
            ROOT / "reports" / "reference",
            SIZE,
            [load_suite(folder) for folder in list_suites(ROOT / "suites")],
        )
    print(index)
    if with_picture:
        print(picture(index.with_name("das2016.html"), ROOT / "docs" / "report.png", width=1400, height=1500))


def readme() -> None:
    """Write the tables anew."""
    path = ROOT / "README.md"
    path.write_text(with_tables(path.read_text()))


def with_tables(text: str) -> str:
    """The README's text with the tables that results/reference/ gives."""
    text = _between(text, "verdicts", verdict_table(json.loads(CLAIMS.read_text())["claims"]))
    return _between(text, "speed", (REFERENCE / "bench.md").read_text())


def verdict_table(claims: list[dict[str, Any]]) -> str:
    """Counts of verdicts per suite and kind of entry, then each claim of our own that launches served."""
    rows = ["| suite | entries | number | verdicts |", "|---|---|---|---|"]
    for suite in dict.fromkeys(claim["suite"] for claim in claims):
        for title, (kind, origin) in KINDS.items():
            chosen = [
                claim
                for claim in claims
                if claim["suite"] == suite and claim["kind"] == kind and origin in (None, claim["origin"])
            ]
            if chosen:
                rows.append(f"| {suite} | {title} | {len(chosen)} | {_counted(chosen)} |")
    own = [_own(claim) for claim in claims if claim["origin"] == "own" and claim["n"]]
    rows += ["", "<details>", f"<summary>Each of the {len(own)} claims of our own that launches served</summary>", ""]
    rows += [
        "| claim of our own | evidence | ours | interval | noise floor | n | verdict |",
        "|---|---|---|---|---|---|---|",
        *own,
        "",
        "</details>",
    ]
    return "\n".join(rows) + "\n"


def _counted(claims: list[dict[str, Any]]) -> str:
    """How many have each verdict, and how many of those stand on evidence whose validation was missed."""
    found = Counter(claim["verdict"] for claim in claims)
    lowered = Counter(claim["verdict"] for claim in claims if (claim.get("label") or {}).get("standing") == "missed")
    return ", ".join(
        f"{word} {found[word]}" + (f" ({lowered[word]} where validation missed)" if lowered[word] else "")
        for word in sorted(found)
    )


def _own(claim: dict[str, Any]) -> str:
    found, floor = claim["interval"], claim["noise_floor"]
    interval = f"{_number(found['low'])} to {_number(found['high'])}" if found else ""
    unit = "" if claim["unit"] == "1" else f" {claim['unit']}"
    shown = "" if floor is None else f"{float(f'{100 * floor:.2g}'):g} %"
    label = claim.get("label")
    evidence = claim["evidence"] + (f" ({STANDING_WORDS[label['standing']]})" if label else "")
    return f"| `{claim['id']}` | {evidence} | {_number(claim['ours'])}{unit} | {interval} | {shown} | {claim['n']} | {claim['verdict'] or 'shown only'} |"


def _number(value: float | str | None) -> str:
    return f"{value:.3g}" if isinstance(value, float | int) else str(value)


def _between(text: str, name: str, content: str) -> str:
    """Replace what stands between the markers of a section."""
    start, end = f"<!-- {name}: made by tools/reference.py -->", f"<!-- end of {name} -->"
    replaced, count = re.subn(
        f"{re.escape(start)}.*?{re.escape(end)}", lambda _: f"{start}\n{content}{end}", text, flags=re.DOTALL
    )
    if count != 1:
        raise SystemExit(f"README.md: the markers of {name!r} stand there {count} times")
    return replaced


def main() -> None:
    """Run the action that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    actions = parser.add_subparsers(dest="action", required=True)
    for name in ("pack", "pages"):
        action = actions.add_parser(name)
        action.add_argument("archive", type=Path, nargs="?", default=ARCHIVE, help="default: %(default)s")
    action.add_argument("--picture", action="store_true", help="also write docs/report.png")
    actions.add_parser("readme")
    arguments = parser.parse_args()
    if arguments.action == "pack":
        pack(arguments.archive)
    elif arguments.action == "pages":
        pages(arguments.archive, arguments.picture)
    else:
        readme()


if __name__ == "__main__":
    main()
