"""The comparisons of suite crosscheck at size full: a run of their own, since each goes on for up to ten minutes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scaleproof.claims.claims_file import ClaimResult, read_claims
from tools.reference import REFERENCE, own_runs
from tools.reference.one_run import Fact, facts, mixture

SUITE, SIZE = "crosscheck", "full"
JUDGED = {"reproduced": "agree", "not reproduced": "differ", "inconclusive": "open"}
"""What a verdict says of the two instruments."""
WHY_OPEN = {
    "straddles": "0.95 or 1.05 lies in the interval",
    "within floor": "the noise floor is larger than the distance from 0.95 or 1.05",
}


def keep(results: Path, reference: Path = REFERENCE) -> None:
    """Store the judged comparisons of a results folder. SystemExit with one line where they are no single run."""
    claims = [claim for claim in read_claims(results / "claims" / f"{SUITE}.{SIZE}.json").claims if _compared(claim)]
    used = {run for claim in claims for run in claim.runs}
    launches = [fact for fact in facts(results) if fact.name.split()[-1] in used]
    if why := mixture(launches):
        raise SystemExit(f"{results}: not one run: {why}")
    minutes = _minutes(results)
    form = {**_run(results, launches[0], used), "comparisons": [_row(claim, minutes) for claim in claims]}
    path = reference / own_runs.COMPARISONS
    path.write_text(json.dumps(form, indent=1) + "\n")
    own_runs.note(path, reference)


def section(reference: Path = REFERENCE) -> str:
    """The run in a sentence, and a row for each comparison."""
    form = json.loads((reference / own_runs.COMPARISONS).read_text())
    head = (
        f"`scaleproof run {SUITE} --size {SIZE}` of {form['date']} ({form['cpu']}, {form['cores']} cores, commit "
        f"`{form['commit'][:8]}`), {form['launches']} launches. Each ratio is the tool's number over ours:"
    )
    rows = [
        "| claim | ratio | 95 % interval | launches | minutes | noise floor | the two |",
        "|---|---|---|---|---|---|---|",
    ]
    return "\n".join([head, "", *rows, *(_shown(row) for row in form["comparisons"])]) + "\n"


def _compared(claim: ClaimResult) -> bool:
    return claim.kind == "claim" and claim.verdict in JUDGED and claim.interval is not None


def _minutes(results: Path) -> dict[str, float]:
    """What the launches of a comparison took, where a rule of width ended it."""
    stops = [json.loads(path.read_bytes()) for path in sorted((results / "stops").glob(f"{SUITE}.*.{SIZE}.json"))]
    return {claim["claim"]: claim["minutes"] for stop in stops for claim in stop["claims"]}


def _run(results: Path, launch: Fact, used: set[str]) -> dict[str, Any]:
    record = json.loads(next((results / "runs").glob(f"*/{launch.name.split()[-1]}/run.json")).read_bytes())
    host = record["environment"]
    return {
        "commit": launch.commit,
        "machine": launch.machine,
        "date": record["started_at"][:10],
        "cpu": host["cpu"],
        "cores": host["cores"],
        "launches": len(used),
    }


def _row(claim: ClaimResult, minutes: Mapping[str, float]) -> dict[str, Any]:
    interval = claim.interval
    assert interval is not None  # of _compared
    return {
        "claim": claim.id,
        "ratio": claim.ours,
        "low": interval.low,
        "high": interval.high,
        "launches": claim.n,
        "minutes": minutes.get(claim.id),
        "floor": claim.noise_floor,
        "verdict": claim.verdict,
        "reason": claim.outcome.reason if claim.outcome else None,
    }


def _shown(row: Mapping[str, Any]) -> str:
    said = JUDGED[row["verdict"]]
    if said == "open" and row["reason"] in WHY_OPEN:
        said += f": {WHY_OPEN[row['reason']]}"
    taken = "" if row["minutes"] is None else f"{row['minutes']:.1f}"
    floor = "" if row["floor"] is None else f"{percent(row['floor'])} %"
    name = row["claim"].removeprefix(f"{SUITE}.")
    return (
        f"| {name} | {_ratio(row['ratio'])} | {_ratio(row['low'])} to {_ratio(row['high'])} | {row['launches']} | "
        f"{taken} | {floor} | {said} |"
    )


def percent(share: float) -> str:
    """Two significant digits."""
    return f"{float(f'{100 * share:.2g}'):g}"


def _ratio(value: float) -> str:
    """Three decimals; near 1 as many as show a difference from it."""
    return f"{value:.5f}" if abs(value - 1) < 5e-4 else f"{value:.3f}"
