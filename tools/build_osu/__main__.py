"""`python -m tools.build_osu --source CLONE --into FOLDER`: builds osu_latency and osu_bw with this environment's
mpicc."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tools.build_osu.programs import build
from tools.build_osu.source import COMMIT, REPOSITORY, VERSION, taken
from tools.setup.console import Steps, exit_code_of


def main() -> int:
    """Exit code 0 when both programs are in the folder."""
    parser = argparse.ArgumentParser(prog="python -m tools.build_osu", description=__doc__)
    parser.add_argument("--source", type=Path, required=True, help=f"clone of {REPOSITORY}, or a copy of {COMMIT[:12]}")
    parser.add_argument("--into", type=Path, required=True, help="folder of the two programs, to add to PATH")
    chosen = parser.parse_args()
    return exit_code_of(lambda: _build(chosen.source, chosen.into.absolute()), "OSU micro-benchmarks")


def _build(source: Path, into: Path) -> None:
    steps = Steps(1)
    steps.begin(f"build osu_latency, osu_bw {VERSION}")
    build(taken(source), into)
    steps.end()
    print(f"Now type: export PATH={into}:$PATH")


if __name__ == "__main__":
    sys.exit(main())
