"""The tables of README.md and of docs/reference_*.md, from results/reference/."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.outcome import outcome
from scaleproof.claims.claims_file import STANDING_TEXTS
from scaleproof.core.evidence_marks import SOFT_ROCE
from scaleproof.spec.units import format_bytes
from tools.reference import REFERENCE, ROOT, comparisons, own_runs
from tools.reference.stored import minutes_table, statement, statement_of_speed
from tools.reference.verdicts import Verdict, read

SHARES_PAGE, COMPARED_PAGE = ROOT / "docs" / "add_a_suite.md", ROOT / "docs" / "crosscheck.md"
KINDS = {
    "published": ("claim", "paper"),
    "our own": ("claim", "own"),
    "checks": ("check", None),
    "consistency": ("consistency", None),
}
OLD_BENCH = (
    "This run is older than the rules of [benchmarks.md]({folder}benchmarks.md): its bound is a median of launches, "
    "not the fastest, and its peers ran with the settings that they are shipped with."
)
"""Of a bench.json with schema version 1."""
UNLIKE = (
    "This run is older than two rules of [benchmarks.md]({folder}benchmarks.md): sockets of tcp had congestion control "
    "reno, those of gRPC and of all peers {congestion}; and a setting of a peer was tuned with all sizes, but measured "
    "with those alone that it is used for. Both can favour our transports."
)
"""Of one with schema version 2 or 3."""
LIKE = 4
"""Schema version from which all arms ran alike."""
WRITTEN = "Written by `python -m tools.reference readme`; a test keeps it equal to `results/reference/`."


def write() -> None:
    """Rewrite every table."""
    for path, text in pages().items():
        path.write_text(text)


def pages() -> dict[Path, str]:
    """Each file and its expected text. SystemExit with one line where a file of the reference was changed by hand."""
    own_runs.check(REFERENCE)
    verdicts, readme = read(), ROOT / "README.md"
    bench = json.loads((REFERENCE / "bench.json").read_text())
    run, speed = statement(), statement_of_speed(bench)
    text = _between(readme.read_text(), "verdicts", f"{run}\n\n{totals(verdicts)}")
    return {
        readme: _between(text, "speed", f"{speed}\n\n{ratios(bench['targets'])}{old(bench, 'docs/')}"),
        ROOT / "docs" / "reference_verdicts.md": verdicts_page(verdicts, run),
        ROOT / "docs" / "reference_speed.md": speed_page(
            (REFERENCE / "bench.md").read_text(), f"{speed}{old(bench, '')}"
        ),
        COMPARED_PAGE: _between(COMPARED_PAGE.read_text(), "comparisons", comparisons.section()),
        SHARES_PAGE: _between(SHARES_PAGE.read_text(), "minutes", minutes_table()),
    }


def totals(verdicts: Sequence[Verdict]) -> str:
    """Counts of verdicts over all suites of the run: a row per kind of entry."""
    suites = len({verdict.suite for verdict in verdicts})
    rows = [f"| {name} | {_cell(verdicts, *kind)} |" for name, kind in KINDS.items()]
    return "\n".join([f"| entries | verdicts of {suites} suites |", "|---|---|", *rows]) + "\n"


def counts(verdicts: Sequence[Verdict]) -> list[str]:
    """Counts of verdicts: a row per suite, a column per kind of entry."""
    rows = [f"| suite | {' | '.join(KINDS)} |", f"|---|{'---|' * len(KINDS)}"]
    for suite in dict.fromkeys(verdict.suite for verdict in verdicts):
        of_suite = [verdict for verdict in verdicts if verdict.suite == suite]
        rows.append(f"| {suite} | {' | '.join(_cell(of_suite, *kind) for kind in KINDS.values())} |")
    return rows


def _cell(verdicts: Sequence[Verdict], kind: str, origin: str | None) -> str:
    chosen = [verdict for verdict in verdicts if verdict.kind == kind and origin in (None, verdict.origin)]
    return f"{len(chosen)}: {_counted(chosen)}" if chosen else ""


def _counted(verdicts: Sequence[Verdict]) -> str:
    """Number of entries with each verdict, and of them those on evidence whose validation was missed, over soft-RoCE,
    and of reduced networks."""
    by_word: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        by_word.setdefault(verdict.verdict, []).append(verdict)
    return ", ".join(f"{word} {len(alike)}{_marked(alike)}" for word, alike in sorted(by_word.items()))


def _marked(verdicts: Sequence[Verdict]) -> str:
    marks = {
        "where validation missed": sum(verdict.standing == "missed" for verdict in verdicts),
        f"over {SOFT_ROCE}": sum(SOFT_ROCE in verdict.details for verdict in verdicts),
        "reduced, not comparable": sum(bool(verdict.work_factor) for verdict in verdicts),
    }
    named = [f"{number} {mark}" for mark, number in marks.items() if number]
    return f" ({', '.join(named)})" if named else ""


def verdicts_page(verdicts: Sequence[Verdict], run: str) -> str:
    """docs/reference_verdicts.md: counts by suite, each claim of our own that launches served, and the checks apart."""
    served = [verdict for verdict in verdicts if verdict.launches]
    rows = [_row(verdict) for verdict in served if verdict.origin == "own" and verdict.kind != "check"]
    checks = [_row(verdict) for verdict in served if verdict.kind == "check"]
    return "\n".join(
        [
            "# Verdicts of the reference run",
            "",
            WRITTEN,
            "",
            run,
            "",
            *counts(verdicts),
            "",
            "## Our own claims",
            "",
            f"Each of the {len(rows)} claims of our own that launches gave a value. "
            "[verdicts.md](verdicts.md) says how a verdict comes about.",
            "",
            *_table("claim of our own", rows),
            *(["## Checks: what our own code counts, and identities", "", *_table("check", checks)] if checks else []),
        ]
    )


def _table(first: str, rows: Sequence[str]) -> list[str]:
    return [
        f"| {first} | evidence | ours | interval | noise floor | launches | verdict |",
        "|---|---|---|---|---|---|---|",
        *rows,
        "",
    ]


def _row(verdict: Verdict) -> str:
    evidence = ", ".join(filter(None, [verdict.evidence, verdict.details]))
    if verdict.standing:
        evidence += f" ({STANDING_TEXTS[verdict.standing]})"  # type: ignore[index]  # read from a file of ours
    interval = "" if verdict.low is None else f"{_number(verdict.low)} to {_number(verdict.high)}"
    floor = "" if verdict.noise_floor is None else f"{comparisons.percent(verdict.noise_floor)} %"
    unit = "" if verdict.unit == "1" else f" {verdict.unit}"
    cells = [f"`{verdict.id}`", evidence, f"{_number(verdict.ours)}{unit}", interval, floor, str(verdict.launches)]
    return f"| {' | '.join(cells)} | {verdict.verdict or 'shown only'} |"


def _number(value: float | None) -> str:
    return "None" if value is None else f"{value:.3g}"


def old(bench: dict[str, Any], folder: str) -> str:
    """What readers of an old bench.json have to know; empty for one that follows the rules. `folder`: of the docs."""
    if bench["schema_version"] >= LIKE:
        return ""
    text = OLD_BENCH if bench["schema_version"] == 1 else UNLIKE
    return f"\n{text.format(folder=folder, congestion=bench['machine']['congestion_control'])}\n"


def ratios(targets: Sequence[dict[str, Any]]) -> str:
    """The targets of `make bench`: our transports against others. The outcome is computed here: an old file judged by
    the ratio alone."""
    rows = ["| target | ratio | 95 % interval | wanted | |", "|---|---|---|---|---|"]
    for target in targets:
        name = f"{target['arm']} against {target['against']}, {format_bytes(target['nbytes'])}, {target['ranks']} ranks"
        if target["ratio"] is None:
            rows.append(f"| {name} | | | {target['wanted']:g} | not measured |")
            continue
        low, high = target["low"], target["high"]
        interval = "" if low is None else f"{low:.2f} to {high:.2f}"
        reached = outcome(low, high, target["wanted"])
        rows.append(f"| {name} | {target['ratio']:.2f} | {interval} | {target['wanted']:g} | {reached} |")
    return "\n".join(rows) + "\n"


def speed_page(bench: str, run: str) -> str:
    """docs/reference_speed.md: the whole output of `make bench`."""
    return (
        f"# Speed of transports and collectives\n\n{WRITTEN} {run} [benchmarks.md](benchmarks.md) says how it was "
        f"measured.\n\n{bench}"
    )


def _between(text: str, name: str, content: str) -> str:
    """Replace the text between the markers of a section."""
    start, end = f"<!-- {name}: made by tools/reference -->", f"<!-- end of {name} -->"
    replaced, count = re.subn(
        f"{re.escape(start)}.*?{re.escape(end)}", lambda _: f"{start}\n{content}{end}", text, flags=re.DOTALL
    )
    if count != 1:
        raise SystemExit(f"the markers of {name!r} stand there {count} times")
    return replaced
