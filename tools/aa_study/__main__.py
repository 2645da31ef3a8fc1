"""`python -m tools.aa_study run|pack|table`: identical arms of what claims judge, on a quiet machine, in two hours.

run      all launches, in interleaved blocks; goes on where it was interrupted
pack     one value per launch and kind -> results/reference/aa_study.csv, what was run -> aa_study.json
table    the outcome, computed from the kept values -> docs/calibration.md"""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from scaleproof.record.store import Store
from tools.aa_study import DOCS, ROOT, STUDY, VALUES, kept, launches
from tools.aa_study.analysis import SEED, Pairs, outcome
from tools.aa_study.kinds import ARMS, Kind
from tools.reference import own_runs


def run(options: argparse.Namespace) -> int:
    """Run the pool, then real slowdowns of the resolution that it has."""
    pool = launches.Pool(options.results, options.blocks, options.minutes)
    if not pool.run().complete:
        return 1
    return 0 if launches.confirm(options.results, resolutions(pool)).complete else 1


def resolutions(pool: launches.Pool) -> dict[Kind, float]:
    """Of every kind that has one."""
    store, found = Store(pool.results), dict[Kind, float]()
    calls = pool.calls(store)
    for kind in pool.kinds:
        first, second = (pool.values(kind, store)[arm] for arm in ARMS)
        resolution = outcome(Pairs.of(first, second, kind.higher_is_better, calls)).resolution
        if resolution is not None:
            found[kind] = resolution
    return found


def pack(options: argparse.Namespace) -> int:
    """Write the kept files."""
    pool = launches.Pool(options.results, options.blocks, options.minutes)
    store, handicaps = Store(options.results), resolutions(pool)
    cases = [kind.case_of(arm) for kind in pool.kinds for arm in ARMS]
    values = {kind.name: pool.values(kind, store) for kind in pool.kinds}
    for kind, handicap in handicaps.items():
        values[kind.name] |= launches.confirmed_values(kind, handicap, store)
    alike, confirmed = pool.records(store), launches.confirmed_records(handicaps, store)
    first = alike[0]
    facts = {
        "date": datetime.now(UTC).date().isoformat(),
        "commit": first.code.commit,
        "code": first.code.digest,
        "machine": first.machine,
        "cpu": first.environment.get("cpu"),
        "seed": SEED,
        "minutes": round(sum(record.wall_s for record in (*alike, *confirmed)) / 60, 1),
        "calls": {
            "/".join(ARMS): launches.calls_of(alike),
            "/".join(launches.CONFIRMING): launches.calls_of(confirmed),
        },
        "kinds": {kind.name: _facts(kind, handicaps.get(kind)) for kind in pool.kinds},
        "cases": {case.case_id: case.model_dump(mode="json") for case in cases},
    }
    VALUES.parent.mkdir(parents=True, exist_ok=True)
    kept.write(kept.Study(values, facts), VALUES, STUDY)
    own_runs.note(VALUES)
    own_runs.note(STUDY)
    print(f"{VALUES}\n{STUDY}")
    return 0


def _facts(kind: Kind, handicap: float | None) -> dict[str, Any]:
    return {
        "title": kind.title,
        "metric": kind.metric,
        "nbytes": kind.nbytes,
        "better": "higher" if kind.higher_is_better else "lower",
        "case": kind.case.case_id,
        "handicap": handicap,
    }


def table(options: argparse.Namespace) -> int:
    """Print the outcome and write it to docs/calibration.md."""
    own_runs.check(names=own_runs.STUDY)
    text = kept.table(kept.read(VALUES, STUDY))
    print(text)
    DOCS.write_text(kept.replaced(DOCS.read_text(), text))
    return 0


ACTIONS = {"run": run, "pack": pack, "table": table}


def main() -> int:
    """Parse the command line and run the chosen action."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=list(ACTIONS))
    parser.add_argument("--blocks", type=int, default=launches.BLOCKS, help="most blocks (default: %(default)s)")
    parser.add_argument("--minutes", type=float, default=launches.MINUTES, help="most minutes (default: %(default)s)")
    parser.add_argument(
        "--results",
        type=Path,
        default=ROOT / "results" / "aa-study",
        help="folder of the records (default: %(default)s)",
    )
    options = parser.parse_args()
    return ACTIONS[options.action](options)


if __name__ == "__main__":
    raise SystemExit(main())
