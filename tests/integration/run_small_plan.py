"""A supervisor in a process of its own, to be killed: `run_small_plan.py RESULTS REPETITIONS ITERATIONS [--beside]`.
Prints each launch's id when it has its record. `--beside`: other launches may run beside these."""

from __future__ import annotations

import sys
from pathlib import Path

from scaleproof.core.record_schema import Record
from scaleproof.launch.supervisor import run_plan
from scaleproof.spec.errors import SpecError
from tests.integration.launches import Timekeeper, launches, small_case


class Printing(Timekeeper):
    def ended(self, record: Record) -> None:
        print(record.launch, record.status, flush=True)


if __name__ == "__main__":
    try:
        run_plan(
            launches([small_case(iterations=int(sys.argv[3]))], int(sys.argv[2])),
            Path(sys.argv[1]),
            size="ci",
            deadline_s=30.0,
            progress=Printing(),
            timed="--beside" not in sys.argv,
        )
    except SpecError as error:
        print(error)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
