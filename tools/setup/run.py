"""The steps of a set-up: check the machine, download, build Horovod once, make `.venv`."""

from __future__ import annotations

import argparse
import fcntl
import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tools.build_horovod import build
from tools.setup import guests, machine, packages
from tools.setup.console import CommandError, SetupError, Steps, clock, exit_code_of

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / ".venv"
LOCK = ROOT / "requirements.lock"
STAMP = VENV / ".scaleproof"
STEPS = 6
# Measured and rounded up: 0.9 wheels + 3.4 unpacked + 0.5 compiled; Horovod's build folder; the rest of `.venv`.
PACKAGES_GB, HOROVOD_GB, VENV_GB = 5.5, 1.5, 0.3


class Cache:
    """Paths in the user's cache folder."""

    def __init__(self, key: str, horovod_key: str) -> None:
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        self.root = home.absolute() / "scaleproof"
        self.wheels = self.root / "wheels"
        self.horovod = self.wheels / "horovod" / horovod_key
        self.build = self.root / "build" / horovod_key
        self.unpacked = self.root / "uv"
        self.reference = self.root / "reference" / key
        self.log = self.root / "setup.log"

    @property
    def python(self) -> Path:
        """Python of the reference environment: all packages of the lock, with compiled modules. Every clone's `.venv`
        is made from it."""
        return self.reference / "bin" / "python"


def main(arguments: list[str]) -> int:
    """Entry point; the exit code."""
    parser = argparse.ArgumentParser(
        prog="python3 -m tools.setup",
        description="Make the environment .venv: install system packages (as root), download the pinned packages, "
        "build Horovod and the guests' kernel once. "
        "Downloads and builds are kept in XDG_CACHE_HOME (default ~/.cache).",
        epilog="`python3 -m tools.setup mpich` makes .venv-mpich, an environment with MPICH in place of Open MPI; "
        "`python3 -m tools.setup extras SUITE` installs what only that suite needs.",
    )
    parser.add_argument(
        "--with-tests", action="store_true", help="also install what only tests need: a browser, Slurm, QEMU, perftest"
    )
    options = parser.parse_args(arguments)
    return exit_code_of(lambda: set_up(options.with_tests), "set-up")


def set_up(with_tests: bool) -> None:
    """Run the steps that are not completed yet."""
    started = time.monotonic()
    machine.check_processor(*machine.machine_and_system())
    pins = packages.read_lock(LOCK)
    key = f"cp{sys.version_info.major}{sys.version_info.minor}-{packages.digest(LOCK)}"
    cache = Cache(key, build.wheel_key(pins, build.PATCH.read_bytes()))
    missing = machine.missing_packages(with_tests)
    without_kernel = guests.missing_kernel(with_tests) and (with_tests or _may_get_guests())
    if not missing and not without_kernel and ready(cache):
        guests.link_pyverbs(VENV)
        packages.link_executors(ROOT, VENV)
        return
    machine.need_packages(missing, *may_install())
    if " " in f"{ROOT}{cache.root}":
        raise SetupError(
            f"compilers and mpirun need paths without spaces, not {ROOT} and {cache.root}; "
            "XDG_CACHE_HOME sets another cache"
        )
    _print_estimate(cache, pins)
    cache.root.mkdir(parents=True, exist_ok=True)
    steps = Steps(STEPS)
    with alone(cache.root / "lock", steps):
        cache.log.unlink(missing_ok=True)
        _system_packages(missing, cache, steps)
        _fetch(pins, cache, steps)
        _reference(pins, cache, steps)
        _horovod(cache, steps)
        _guests(with_tests, cache, steps)
        if not ready(cache):
            _make_environment(pins, cache, steps)
        guests.link_pyverbs(VENV)
        packages.link_executors(ROOT, VENV)
    print(f"Environment ready in {clock(time.monotonic() - started)}: {VENV}")


def stamp_text(cache: Cache) -> str:
    """Digest of everything that a finished `.venv` was made from."""
    return "\n".join(
        [str(VENV), cache.reference.name, cache.horovod.name, packages.digest(ROOT / "pyproject.toml"), ""]
    )


def ready(cache: Cache) -> bool:
    """Whether `.venv` is finished and was made from the lock as it is now."""
    return STAMP.is_file() and STAMP.read_text() == stamp_text(cache) and (VENV / "bin" / "python").exists()


@contextmanager
def alone(path: Path, steps: Steps) -> Iterator[None]:
    """Hold the lock of the cache: a second set-up waits."""
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("Another set-up uses the same cache; waiting for it", file=steps.out, flush=True)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _print_estimate(cache: Cache, pins: list[packages.Pin]) -> None:
    missing = packages.missing_pins(pins, cache.wheels)
    share = len(missing) / len(pins)
    horovod = build.cached_wheel(cache.horovod) is None
    unpacked = (cache.reference / "unpacked").exists()
    kernel = guests.missing_kernel(False)
    needed = PACKAGES_GB * share + HOROVOD_GB * horovod + guests.BUILD_GB * kernel + VENV_GB
    minutes = 2 * share + 7 * horovod + guests.BUILD_MIN * kernel + 1 * (not unpacked) + 0.3
    print(
        f"Setting up {VENV}: about {needed:.1f} GB of disk in {cache.root} and, on two cores, up to {minutes:.0f} min; "
        f"log: {cache.log}",
        flush=True,
    )
    machine.check_disk(cache.root, int(needed * machine.GB))
    machine.check_disk(ROOT, int(VENV_GB * machine.GB))


def _system_packages(missing: list[machine.SystemPackage], cache: Cache, steps: Steps) -> None:
    steps.begin("system packages")
    if missing:
        machine.install_packages(missing, cache.log, steps)
    names, without = [package.name for package in missing], ""
    if tools := machine.missing_tools():
        try:
            machine.need_packages(tools, *may_install())
            machine.install_packages(tools, cache.log, steps)
            names += [package.name for package in tools]
        except SetupError:  # set-up continues without them
            without = f"; missing: {machine.missed(tools)}"
    steps.end((", ".join(names) or "all installed") + without)


def _may_get_guests() -> bool:
    """Whether the packages for guests are installed, or can be."""
    return not any(tool in machine.FOR_GUESTS for tool in machine.missing_tools()) or all(may_install())


def may_install() -> tuple[bool, bool]:
    """Whether we are root, and whether there is apt-get."""
    return os.geteuid() == 0, shutil.which("apt-get") is not None


def _fetch(pins: list[packages.Pin], cache: Cache, steps: Steps) -> None:
    steps.begin("download pinned packages")
    count = len(packages.missing_pins(pins, cache.wheels))
    # Missing in a new or incomplete cache, and where its Python was removed from the machine.
    if not (cache.python.exists() and (cache.python.parent / "pip").exists()):
        packages.make_venv(cache.reference, cache.log)
    if count:
        packages.Wheels(cache.wheels, cache.python, cache.log).fetch(pins, steps, os.environ.get("TORCH_INDEX"))
    steps.end(f"{count} fetched, {len(pins) - 1 - count} in the cache")


def _reference(pins: list[packages.Pin], cache: Cache, steps: Steps) -> None:
    steps.begin("unpack and compile modules")
    unpacked = cache.reference / "unpacked"
    if not unpacked.exists():
        uv = next(pin for pin in pins if pin.name == "uv")
        steps.progress("uv")
        python = packages.make_venv(cache.reference, cache.log)
        packages.run(
            [
                str(python),
                "-m",
                "pip",
                "install",
                "--no-index",
                "--no-deps",
                "--find-links",
                str(cache.wheels),
                str(uv),
            ],
            cache.log,
        )
        requirements = [str(pin) for pin in pins if pin.name != packages.FROM_SOURCE]
        packages.install(
            python.parent / "uv",
            python,
            requirements,
            [cache.wheels],
            cache.unpacked,
            cache.log,
            "--compile-bytecode",
            line=lambda _: steps.progress("working"),
        )
        unpacked.touch()
        # Environments of other locks: each takes 0.5 GB and is quick to make again.
        others = [folder for folder in cache.reference.parent.iterdir() if folder != cache.reference]
        for folder in others:
            shutil.rmtree(folder)
    steps.end()


def _horovod(cache: Cache, steps: Steps) -> None:
    steps.begin("build Horovod")
    cached = build.cached_wheel(cache.horovod) is not None
    if not cached:
        build.build_wheel(cache.python, cache.build, cache.horovod, cache.log, steps)
    steps.end("in the cache" if cached else "built")


def _guests(with_tests: bool, cache: Cache, steps: Steps) -> None:
    """Tests need the guests; without tests set-up continues where there is no kernel."""
    steps.begin("kernel of the guests")
    try:
        steps.end(guests.kernel(with_tests, cache.log, steps))
    except (SetupError, CommandError) as error:
        if with_tests:
            raise
        steps.end(f"missing, fabric guests is not runnable: {error}")


def _make_environment(pins: list[packages.Pin], cache: Cache, steps: Steps) -> None:
    steps.begin("make .venv")
    python = packages.make_venv(VENV, cache.log)
    uv = cache.python.parent / "uv"
    packages.install(uv, python, [str(pin) for pin in pins], [cache.wheels, cache.horovod], cache.unpacked, cache.log)
    site_packages = Path("lib", f"python{sys.version_info.major}.{sys.version_info.minor}", "site-packages")
    packages.share_bytecode(cache.reference / site_packages, VENV / site_packages)
    packages.install(uv, python, ["--editable", str(ROOT)], [], cache.unpacked, cache.log, "--no-build-isolation")
    packages.run([str(uv), "pip", "check", "--python", str(python)], cache.log)
    part = STAMP.with_suffix(".part")
    part.write_text(stamp_text(cache))
    part.replace(STAMP)
    steps.end()
