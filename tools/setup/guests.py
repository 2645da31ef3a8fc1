"""Requirements of guests and verbs: the kernels in the cache, and Debian's pyverbs in `.venv`."""

from __future__ import annotations

import sys
from pathlib import Path

from scaleproof.fabric.guests import guest_kernels
from tools.build_guest_kernel.stock import make_stock
from tools.build_guest_kernel.uml import build_uml
from tools.setup.console import Steps

PYVERBS = Path("/usr/lib/python3/dist-packages/pyverbs")
"""Debian's build, made against Debian's libibverbs; the released source does not build against it. Only this package of
Debian's Python is used."""
BUILD_GB, BUILD_MIN = 0.9, 5


def missing_kernel(with_tests: bool) -> bool:
    """Whether a kernel is missing: the one for User-Mode Linux, for tests also the stock one for QEMU."""
    return guest_kernels.uml() is None or (with_tests and guest_kernels.qemu() is None)


def kernel(with_tests: bool, log: Path, steps: Steps) -> str:
    """Build or fetch the missing kernels; returns a description of the steps. SetupError or CommandError on failure."""
    steps_done = []
    if guest_kernels.uml() is None:
        build_uml(log, steps)
        steps_done.append("built")
    if with_tests and guest_kernels.qemu() is None:
        make_stock(log, steps)
        steps_done.append("stock kernel for QEMU fetched")
    return ", ".join(steps_done) or "in the cache"


def link_pyverbs(venv: Path) -> bool:
    """Link the package's folder into the environment. Returns whether the package exists."""
    site_packages = venv / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    link = site_packages / "pyverbs"
    if not PYVERBS.is_dir() or not site_packages.is_dir():
        return False
    if not link.is_symlink():
        link.symlink_to(PYVERBS)
    return True
