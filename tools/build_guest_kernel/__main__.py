"""`python3 -m tools.build_guest_kernel [--qemu]`: what `make env` does for the guests, alone."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

from harness.fabric import kernels
from tools.build_guest_kernel.stock import make_stock
from tools.build_guest_kernel.uml import build_uml
from tools.setup.console import CommandError, SetupError, Steps


def main() -> int:
    """Exit code 0 when the kernel is in the cache."""
    parser = argparse.ArgumentParser(prog="python3 -m tools.build_guest_kernel", description=__doc__)
    parser.add_argument("--qemu", action="store_true", help="the stock kernel for QEMU instead, which compiles nothing")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    steps, log = Steps(1), kernels.folder() / "build.log"
    log.unlink(missing_ok=True)
    try:
        steps.begin("kernel for QEMU guests" if given.qemu else "build the guests' kernel")
        made: Path = make_stock(log, steps) if given.qemu else build_uml(log, steps)
        steps.end(str(made))
    except SetupError as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    except CommandError as error:
        print(f"\n{error}; its last lines, all of them in {log}:\n{error.output[-2000:]}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ninterrupted; the same command goes on from here", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
