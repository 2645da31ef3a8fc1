"""Prints how far workers come under each barrier of suite psp2017, as a table in Markdown:
`python -m tools.barrier_progress [SEED]`. Each row is one simulated launch of experiment `progress`, size small."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from scaleproof.claims.made_up import MadeUp
from scaleproof.claims.metrics import Metric
from scaleproof.claims.suite_metrics import suite_metrics
from scaleproof.simulate.predict import Predictor
from scaleproof.spec.case import AnyCase
from scaleproof.spec.plan import PlannedLaunch
from scaleproof.spec.suite import load_suite

SUITE = Path(__file__).parents[1] / "suites" / "psp2017"
COLUMNS = {
    "mean": "progress_mean",
    "min": "progress_min",
    "max": "progress_max",
    "std": "progress_std",
    "p95 - p5": "progress_spread",
    "updates": "progress_updates",
    "questions": "sample_messages",
    "mean lag": "lag_mean",
}
"""Heading and metric."""


def row(case: AnyCase, seed: int, predictor: Predictor, metrics: dict[str, Metric]) -> list[str]:
    """The values of one launch."""
    samples = predictor.predict(PlannedLaunch(case, 0, seed, 0)).samples.to_pandas()
    samples["event"] = samples["event"].astype("category")
    record, cells = MadeUp().record(case), [case.arm]
    for name in COLUMNS.values():
        launch = metrics[name].launch
        value = None if launch is None else launch(record, samples)
        cells.append("–" if value is None else f"{value:,.4g}" if value < 1000 else f"{value:,.0f}")
    return cells


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seed", type=int, nargs="?", default=1, help="of step times and samples (default: 1)")
    seed = parser.parse_args().seed
    print(f"| barrier | {' | '.join(COLUMNS)} |\n|{'---|' * (1 + len(COLUMNS))}")
    with tempfile.TemporaryDirectory() as folder:
        predictor, metrics = Predictor(Path(folder)), suite_metrics(SUITE)
        for case in load_suite(SUITE).experiment("progress").size("small").cases:
            print(f"| {' | '.join(row(case, seed, predictor, metrics))} |", flush=True)


if __name__ == "__main__":
    main()
