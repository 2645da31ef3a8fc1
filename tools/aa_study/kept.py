"""What is kept of the study: one row a launch and kind, the cases behind them, and the table of docs/calibration.md."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.aa_study.analysis import (
    LAUNCHES,
    Alarms,
    Confirmation,
    Outcome,
    Pairs,
    confirmation,
    outcome,
    share_beyond_floor,
    share_beyond_own_floor,
)
from tools.aa_study.analysis import pooled as pooled_alarms
from tools.aa_study.kinds import ARMS
from tools.aa_study.launches import CONFIRMING

MORE = 24
"""Launches an arm of larger comparisons, whose floor follows from that of LAUNCHES."""
COLUMNS = ("kind", "block", "arm", "value")
BEGIN, END = "<!-- aa_study -->", "<!-- end of aa_study -->"
Values = Mapping[str, Mapping[str, Mapping[int, float]]]
"""By kind, arm and block."""


@dataclass(frozen=True, slots=True)
class Study:
    """The kept values, and what was run."""

    values: Values
    facts: dict[str, Any]
    """Date, commit, machine, seeds and cases; of each kind its title, metric and case."""

    def pairs(self, kind: str, arms: tuple[str, str]) -> Pairs:
        """Blocks in which both arms have a value."""
        first, second = (self.values[kind].get(arm, {}) for arm in arms)
        return Pairs.of(first, second, self.facts["kinds"][kind]["better"] == "higher", self.calls(arms))

    def calls(self, arms: tuple[str, str]) -> dict[int, int]:
        """Which call of `run` made each block of these arms; empty for values that are older than this entry."""
        return {int(block): call for block, call in self.facts.get("calls", {}).get("/".join(arms), {}).items()}

    def outcomes(self) -> dict[str, Outcome]:
        """By kind."""
        return {kind: outcome(self.pairs(kind, ARMS)) for kind in self.facts["kinds"]}

    def pooled(self, outcomes: Mapping[str, Outcome]) -> Alarms:
        """False alarms of all kinds."""
        of_case = {self.facts["kinds"][name]["case"]: kind.alarms.independent for name, kind in outcomes.items()}
        return pooled_alarms([kind.alarms for kind in outcomes.values()], sum(of_case.values()))

    def confirmation(self, kind: str, floor: float) -> Confirmation | None:
        """Of the launches with a real slowdown; None where none were run."""
        handicap = self.facts["kinds"][kind].get("handicap")
        confirming = self.pairs(kind, CONFIRMING)
        return confirmation(confirming, handicap, floor) if handicap and len(confirming.first) >= LAUNCHES else None


def write(study: Study, values: Path, facts: Path) -> None:
    """Both files."""
    with values.open("w", newline="") as target:
        writer = csv.writer(target, lineterminator="\n")
        writer.writerow(COLUMNS)
        for kind, arms in study.values.items():
            for arm, blocks in arms.items():
                writer.writerows((kind, block, arm, f"{value:.6g}") for block, value in sorted(blocks.items()))
    facts.write_text(json.dumps(study.facts, indent=1) + "\n")


def read(values: Path, facts: Path) -> Study:
    """What `write` wrote."""
    by_kind: dict[str, dict[str, dict[int, float]]] = {}
    with values.open(newline="") as source:
        for row in csv.DictReader(source):
            blocks = by_kind.setdefault(row["kind"], {}).setdefault(row["arm"], {})
            blocks[int(row["block"])] = float(row["value"])
    return Study(by_kind, json.loads(facts.read_text()))


def table(study: Study) -> str:
    """The table of docs/calibration.md, between its marks."""
    outcomes = study.outcomes()
    launches = sum(len(blocks) for arms in study.values.values() for blocks in arms.values())
    beyond = {name: share_beyond_floor(study.pairs(name, ARMS), MORE) for name in outcomes}
    own = {name: share_beyond_own_floor(study.pairs(name, ARMS)) for name in outcomes}
    rows = [_row(study, name, kind, beyond[name], own[name]) for name, kind in outcomes.items()]
    lines = [
        BEGIN,
        f"| {launches} values{_calls(study)}, {study.facts['cpu']}, {study.facts['date']} | noise floor | spread | "
        "false alarms | with arms swapped | 95 % interval | resolution | launches slowed by it | "
        f"beyond the floor of {MORE} launches | beyond the floor of {LAUNCHES} launches of one arm |",
        "|---|---|---|---|---|---|---|---|---|---|",
        *rows,
        _alarms_row("all kinds", "", "", study.pooled(outcomes), "", "", _mean(beyond.values()), _mean(own.values())),
        END,
    ]
    return "\n".join(lines)


def _calls(study: Study) -> str:
    """How many calls made the pool, where an interruption made it more than one."""
    count = len(set(study.calls(ARMS).values()))
    return f" of {count} calls" if count > 1 else ""


def _mean(shares: Iterable[float | None]) -> float | None:
    known = [share for share in shares if share is not None]
    return sum(known) / len(known) if known else None


def _row(study: Study, name: str, kind: Outcome, beyond: float | None, own: float) -> str:
    confirmed = study.confirmation(name, kind.floor)
    real = "not run"
    if confirmed is not None:
        real = f"found {confirmed.found} of {confirmed.comparisons}, measured {_percent(confirmed.measured)}"
    resolution = "none up to 100 %" if kind.resolution is None else _percent(kind.resolution)
    title = study.facts["kinds"][name]["title"]
    return _alarms_row(title, _percent(kind.floor), _percent(kind.spread), kind.alarms, resolution, real, beyond, own)


def _alarms_row(
    title: str, floor: str, spread: str, alarms: Alarms, resolution: str, real: str, *beyond: float | None
) -> str:
    low, high = alarms.interval
    cells = (
        title,
        floor,
        spread,
        f"{alarms.as_run} of {alarms.comparisons}",
        f"{alarms.swapped} of {alarms.ways}",
        f"{_percent(low)} to {_percent(high)}",
        resolution,
        real,
        *("not run" if share is None else _percent(share) for share in beyond),
    )
    return f"| {' | '.join(cells)} |"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def in_docs(text: str) -> str | None:
    """The table as a page has it; None where it has none."""
    if BEGIN not in text:
        return None
    return text[text.index(BEGIN) : text.index(END) + len(END)]


def replaced(text: str, new: str) -> str:
    """A page with a new table. SystemExit where it has no place for one."""
    old = in_docs(text)
    if old is None:
        raise SystemExit(f"the page has no line {BEGIN}")
    return text.replace(old, new)
