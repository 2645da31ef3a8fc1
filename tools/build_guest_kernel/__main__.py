"""`python3 -m tools.build_guest_kernel [--qemu]`: builds or fetches the guests' kernel, as `make env` does."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from scaleproof.fabric.guests import guest_kernels
from tools.build_guest_kernel.stock import make_stock
from tools.build_guest_kernel.uml import build_uml
from tools.setup.console import Steps, exit_code_of


def main() -> int:
    """Exit code 0 when the kernel is in the cache."""
    parser = argparse.ArgumentParser(prog="python3 -m tools.build_guest_kernel", description=__doc__)
    parser.add_argument("--qemu", action="store_true", help="the stock kernel for QEMU instead, which compiles nothing")
    options = parser.parse_args()
    return exit_code_of(lambda: _build(options.qemu), "guests' kernel")


def _build(qemu: bool) -> None:
    steps, log = Steps(1), guest_kernels.folder() / "build.log"
    log.unlink(missing_ok=True)
    steps.begin("kernel for QEMU guests" if qemu else "build the guests' kernel")
    made: Path = make_stock(log, steps) if qemu else build_uml(log, steps)
    steps.end(str(made))


if __name__ == "__main__":
    sys.exit(main())
