"""A User-Mode Linux kernel from Debian's linux-source: built once, kept under a key of configuration, patch, source and
compiler."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from scaleproof.fabric.guests import guest_kernels
from tools.build_horovod.build import MARK, end_leftovers, jobs
from tools.setup.console import CommandError, SetupError, Steps, run

PACKAGE = "linux-source-6.1"
SOURCE = Path("/usr/src/linux-source-6.1.tar.xz")
NEEDED = (PACKAGE, "flex", "bison", "bc", "gcc", "make", "xz-utils")
FILES = 830
"""Compiled, about: for the progress line."""
_OTHER_PROCESSORS = (
    "alpha arc arm arm64 csky hexagon ia64 loongarch m68k microblaze mips nios2 openrisc parisc powerpc riscv s390 sh "
    "sparc xtensa"
)
UNUSED = [
    "*/boot/dts",
    *(f"*/arch/{name}/*.[chS]" for name in _OTHER_PROCESSORS.split()),
    *(f"*/drivers/{name}/*.[chS]" for name in ("gpu", "media", "staging", "scsi", "net/ethernet", "net/wireless")),
    "*/sound/*.[ch]",
    "*/Documentation/*.[rty]*",
    "*/tools/testing",
    "*/samples/*.[ch]",
]
"""Two thirds of the source, never compiled here; what Kconfig reads stays."""


def build_uml(log: Path, steps: Steps) -> Path:
    """The kernel; SetupError when a required tool or package is missing. An interrupted build is resumed."""
    if not SOURCE.exists() or (
        absent := [name for name in ("flex", "bison", "bc", "gcc", "make", "xz") if shutil.which(name) is None]
    ):
        missing = PACKAGE if not SOURCE.exists() else ", ".join(absent)
        raise SetupError(
            f"the guests' kernel needs {missing}; type: apt-get install --no-install-recommends {' '.join(NEEDED)}"
        )
    target = guest_kernels.folder() / key()
    if (target / "linux").exists():
        return target / "linux"
    work = guest_kernels.folder() / f"build-{target.name}"
    end_leftovers(work)
    resumed = (work / "configured").exists()
    try:
        built = _compile(work, log, steps)
    except CommandError:
        if not resumed:
            raise
        shutil.rmtree(
            work
        )  # a killed compiler may leave a half-written file that make considers complete: build again from the start
        return build_uml(log, steps)
    return _keep(built, target, work)


def key() -> str:
    """Readable: digest of configuration and patch, version of the source, version of the compiler."""
    source = _output_of("dpkg-query", "-W", "-f", "${Version}", PACKAGE) or "unpackaged"
    return f"uml-{guest_kernels.digest()}-{source}-gcc{_output_of('gcc', '-dumpfullversion')}".replace(":", "_")


def _output_of(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def _compile(work: Path, log: Path, steps: Steps) -> Path:
    source, out = work / "source", work / "out"
    env = {
        name: value
        for name, value in os.environ.items()
        if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES")
    } | {MARK: str(work)}
    make = ["make", "-C", str(source), f"O={out}", "ARCH=um"]
    if not (work / "configured").exists():
        shutil.rmtree(work, ignore_errors=True)
        source.mkdir(parents=True)
        out.mkdir()
        unused = [f"--exclude={pattern}" for pattern in UNUSED]
        steps.progress("unpacking")
        run(
            ["tar", "xJf", str(SOURCE), "-C", str(source), "--strip-components=1", *unused],
            log,
            env=env,
            line=lambda _: steps.progress("unpacking"),
        )
        # outside any repository, so that git takes the patch's paths as they are
        run(
            ["git", "apply", "--whitespace=nowarn", str(guest_kernels.PATCH)],
            log,
            env=env | {"GIT_CEILING_DIRECTORIES": str(work)},
            cwd=source,
        )
        run([*make, f"KCONFIG_ALLCONFIG={guest_kernels.CONFIG}", "allnoconfig"], log, env=env)
        _check(out / ".config")
        (work / "configured").touch()
    run([*make, f"-j{jobs()}", "linux"], log, env=env, line=counted(steps.progress))
    run(["strip", str(out / "linux")], log, env=env)
    run([str(out / "linux"), "--version"], log, env=env)
    return out / "linux"


def _check(config: Path) -> None:
    """Kconfig silently drops an option whose dependency is not enabled."""
    chosen = set(config.read_text().splitlines())
    dropped = [
        line
        for line in guest_kernels.CONFIG.read_text().splitlines()
        if line.startswith("CONFIG_") and line not in chosen
    ]
    if dropped:
        raise SetupError(f"this source does not take {', '.join(dropped)} of {guest_kernels.CONFIG}")


def counted(report: Callable[[str], None]) -> Callable[[str], None]:
    """A reader of make's output that reports how many files are compiled."""
    count = 0

    def read(line: str) -> None:
        nonlocal count
        count += line.lstrip().startswith("CC ")
        report(f"{count} of about {FILES} files")

    return read


def _keep(built: Path, target: Path, work: Path) -> Path:
    part = target.with_name(f".part-{os.getpid()}")
    part.mkdir(parents=True, exist_ok=True)
    shutil.copy2(built, part / "linux")
    shutil.rmtree(target, ignore_errors=True)
    part.rename(target)
    shutil.rmtree(work)
    return target / "linux"
