"""`python -m tools.calibration_study run|pack|judge|pilot`: thousands of launches of under a second on a quiet machine.

pilot    a few launches of several candidates: which has the lowest spread from launch to launch, and how long a launch
takes run      all launches, in interleaved blocks; an interrupted run is resumed pack     one value per launch ->
results/reference/calibration.parquet, the outcome -> results/reference/calibration.json judge    the outcome of the
comparisons, from the stored values; exit code 1 when a criterion is not met"""

from __future__ import annotations

import argparse
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from scaleproof.commands.common import print_table
from scaleproof.launch.progress import progress_on_terminal
from scaleproof.launch.sequential_stopping import finished_launches
from scaleproof.launch.supervisor import run_plan
from scaleproof.record.store import Store
from scaleproof.spec.units import format_seconds
from scaleproof.stats.stopping_rule import BUDGET
from tools.calibration_study import design, values_file
from tools.calibration_study.pilot import pilot

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "results" / "reference"
VALUES, OUTCOME = REFERENCE / "calibration.parquet", REFERENCE / "calibration.json"


def run(options: argparse.Namespace) -> int:
    """Run all launches that are not finished yet."""
    launches = design.planned(options.launches)
    print(f"{len(launches)} launches; at 0.25 s each about {format_seconds(0.25 * len(launches))}", flush=True)
    outcome = run_plan(
        launches,
        options.results,
        size=design.SIZE,
        deadline_s=design.DEADLINE_S,
        progress=progress_on_terminal("calibration study"),
    )
    print(f"{outcome.skipped} finished before, {outcome.completed} done, {outcome.failed} failed. {outcome.stopped}")
    return 0 if outcome.complete else 1


def pack(options: argparse.Namespace) -> int:
    """Write values and outcome to results/reference/."""
    print("reading the launches, about a minute", flush=True)
    values, store = design.values_from(options.results, options.launches), Store(options.results)
    counts = design.repetitions(options.launches)
    cases = design.suite().experiment(design.EXPERIMENT).size(design.SIZE).cases
    records = [record for case in cases for record in finished_launches(case.case_id, counts[case.arm], store)]
    REFERENCE.mkdir(parents=True, exist_ok=True)
    digests = {
        (record.case.arm, record.plan_index): design.digests_ns(store.samples(record).to_pandas())
        for record in records[:: values_file.EVERY]
    }
    values_file.write(VALUES, values.arms, digests)
    first = records[0]
    study = {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": first.machine,
        "cpu": first.environment.get("cpu"),
        "code": first.code.digest,
        "case": cases[0].model_dump(mode="json"),
        "metric": design.METRIC,
        "median_launch_s": sorted(record.wall_s for record in records)[len(records) // 2],
        "outcome": design.outcome(values),
    }
    OUTCOME.write_text(json.dumps(study, indent=1) + "\n")
    print(f"{len(records)} launches: {VALUES}\n{OUTCOME}")
    return judge(options)


def judge(options: argparse.Namespace) -> int:
    """Print the outcome; exit code 1 when a criterion is not met."""
    study = json.loads(OUTCOME.read_text())
    values, _ = values_file.read(VALUES, study["outcome"]["launches_per_arm"])
    outcome = design.outcome(values)
    print(
        f"{study['date']}, {study['cpu']}: noise floor {outcome['noise_floor']:.2%}, "
        f"spread of a launch {outcome['spread']:.2%}; {values.launches} launches an arm"
    )
    print(
        f"find slowdowns from {outcome['detectable']:.2%} on; "
        f"the injected {design.SLOWDOWN:.0%} was measured as {outcome['slowdown_measured']:.2%}"
    )
    rows = [
        _row(name.replace("_", " "), rate)
        for name, rate in outcome.items()
        if isinstance(rate, dict) and "rate" in rate
    ]
    print_table(["", "count", "of", "rate", "95 % interval"], rows)
    for name in ("with_a_floor_above_the_slowdown", "with_too_few_launches"):
        print(
            f"{name.replace('_', ' ')}: {', '.join(f'{finding} {count}' for finding, count in outcome[name].items())}"
        )
    verdicts = design.verdicts(outcome)
    for statement, holds in verdicts.items():
        print(f"{'shown' if holds else 'NOT SHOWN'}: {statement}")
    return 0 if all(verdicts.values()) else 1


def _row(name: str, rate: dict[str, Any]) -> list[str]:
    return [
        name,
        str(rate["count"]),
        str(rate["of"]),
        f"{rate['rate']:.1%}",
        f"{rate['low']:.1%} to {rate['high']:.1%}",
    ]


ACTIONS = {"pilot": pilot, "run": run, "pack": pack, "judge": judge}


def main() -> int:
    """Parse the command line and run the chosen action."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=list(ACTIONS))
    parser.add_argument(
        "--launches",
        type=int,
        default=BUDGET,
        help=f"launches per arm of the first 100 comparisons (default: {BUDGET})",
    )
    parser.add_argument(
        "--results", type=Path, default=ROOT / "results" / "calibration-study", help="folder of the records"
    )
    options = parser.parse_args()
    return ACTIONS[options.action](options)


if __name__ == "__main__":
    raise SystemExit(main())
