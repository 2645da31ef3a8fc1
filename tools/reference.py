"""`python -m tools.reference pack|pages|readme`: keeps one finished run in results/reference/ and makes the README's picture and tables from it.

pack     results/ -> results/reference/: verdicts and runs as text, raw records as one archive
pages    results/reference/ -> reports/reference/index.html and docs/report.png
readme   results/reference/ -> the tables between the markers of README.md
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import tarfile
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = ROOT / "results" / "reference"
SIZE = "smoke"
PARTS = ("runs", "tables", "claims")


def archive(suite: str) -> Path:
    """Raw records, tables and verdicts of one suite."""
    return REFERENCE / f"{suite}.{SIZE}.tar.xz"


def pack(suite: str) -> None:
    """Keep what `snakemake` left in results/ and reports/."""
    REFERENCE.mkdir(parents=True, exist_ok=True)
    with tarfile.open(archive(suite), "w:xz", preset=9) as target:
        for part in PARTS:
            target.add(ROOT / "results" / part, part, filter=_without_owner)
    shutil.copy(ROOT / "results" / "claims" / f"{suite}.{SIZE}.json", REFERENCE / f"{suite}.{SIZE}.claims.json")
    shutil.copy(ROOT / "reports" / "runs.csv", REFERENCE / f"{suite}.{SIZE}.runs.csv")


def _without_owner(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def pages(suite: str) -> None:
    """Build the report of the reference run, and its picture."""
    from harness.report.build import build
    from harness.report.picture import picture
    from harness.spec.suite import load_suite

    with tempfile.TemporaryDirectory(prefix="scaleproof-reference-") as name:
        with tarfile.open(archive(suite)) as source:
            source.extractall(name, filter="data")
        index = build(Path(name), ROOT / "reports" / "reference", SIZE, [load_suite(ROOT / "suites" / suite, None)])
    print(index)
    print(picture(index.with_name(f"{suite}.html"), ROOT / "docs" / "report.png", width=1400, height=1500))


def readme(suite: str) -> None:
    """Write the tables anew."""
    path = ROOT / "README.md"
    path.write_text(with_tables(path.read_text(), suite))


def with_tables(text: str, suite: str) -> str:
    """The README's text with the tables that results/reference/ gives."""
    text = _between(text, "verdicts", verdict_table(json.loads((REFERENCE / f"{suite}.{SIZE}.claims.json").read_text())["claims"]))
    return _between(text, "speed", (REFERENCE / "bench.md").read_text())


def verdict_table(claims: list[dict[str, Any]]) -> str:
    """Counts of verdicts per kind of entry, then each judged claim of our own."""
    kinds = {"published": ("claim", "paper"), "our own": ("claim", "own"), "consistency": ("consistency", None)}
    rows = ["| entries | number | verdicts |", "|---|---|---|"]
    for title, (kind, origin) in kinds.items():
        chosen = [claim for claim in claims if claim["kind"] == kind and origin in (None, claim["origin"])]
        counts = {word: sum(claim["verdict"] == word for claim in chosen) for word in sorted({claim["verdict"] for claim in chosen})}
        rows.append(f"| {title} | {len(chosen)} | {', '.join(f'{word} {number}' for word, number in counts.items())} |")
    rows += ["", "| claim | ours | interval | n | verdict |", "|---|---|---|---|---|"]
    for claim in claims:
        if claim["origin"] == "own":
            found = claim["interval"]
            interval = f"{_number(found['low'])} to {_number(found['high'])}" if found else ""
            unit = "" if claim["unit"] == "1" else f" {claim['unit']}"
            rows.append(f"| `{claim['id']}` | {_number(claim['ours'])}{unit} | {interval} | {claim['n']} | {claim['verdict']} |")
    return "\n".join(rows) + "\n"


def _number(value: float | str | None) -> str:
    return f"{value:.3g}" if isinstance(value, float | int) else str(value)


def _between(text: str, name: str, content: str) -> str:
    """Replace what stands between the markers of a section."""
    start, end = f"<!-- {name}: made by tools/reference.py -->", f"<!-- end of {name} -->"
    replaced, count = re.subn(f"{re.escape(start)}.*?{re.escape(end)}", lambda _: f"{start}\n{content}{end}", text, flags=re.DOTALL)
    if count != 1:
        raise SystemExit(f"README.md: the markers of {name!r} stand there {count} times")
    return replaced


def main() -> None:
    """Parse and do."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["pack", "pages", "readme"])
    parser.add_argument("--suite", default="das2016")
    given = parser.parse_args()
    {"pack": pack, "pages": pages, "readme": readme}[given.action](given.suite)


if __name__ == "__main__":
    main()
