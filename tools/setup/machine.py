"""Requirements on the machine: processor, system packages, disk."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tools.setup.console import CommandError, SetupError, Steps, run

GB = 10**9
SYSTEM_PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
"""PATH of the scripts of packages."""
PROBE_S = 30.0
"""The longest that a command may take to state its version."""


@dataclass(frozen=True, slots=True)
class SystemPackage:
    """A Debian package, whether it is installed, and what it is for."""

    name: str
    present: Callable[[], bool]
    why: str


def has_command(name: str) -> Callable[[], bool]:
    """Whether the command can be found, as a function."""
    return lambda: shutil.which(name) is not None


def has_version(name: str, least: int) -> Callable[[], bool]:
    """Whether the command can be found in this major version or a later one, as a function."""
    return lambda: (major_version(name) or 0) >= least


def major_version(name: str) -> int | None:
    """The major version that `NAME -version` states, as Java's commands do; None where there is none. Before 9, Java
    called version 8 1.8."""
    if shutil.which(name) is None:
        return None
    try:
        told = subprocess.run([name, "-version"], capture_output=True, text=True, timeout=PROBE_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "?(?:1\.)?(\d+)', told.stderr + told.stdout)
    return int(found.group(1)) if found else None


def _python_headers() -> bool:
    return Path(sysconfig.get_path("include"), "Python.h").is_file()


def _python_venv() -> bool:
    try:
        import ensurepip  # noqa: F401
    except ImportError:
        return False
    return True


ALWAYS = (
    SystemPackage("g++", has_command("g++"), "builds Horovod"),
    SystemPackage("make", has_command("make"), "builds Horovod"),
    SystemPackage("git", has_command("git"), "patches Horovod, names the commit of a run"),
    SystemPackage("python3-venv", _python_venv, "makes .venv"),
    SystemPackage("python3-dev", _python_headers, "builds Horovod"),
)
FOR_GUESTS = (
    SystemPackage("linux-source-6.1", Path("/usr/src/linux-source-6.1.tar.xz").is_file, "builds the guests' kernel"),
    SystemPackage("flex", has_command("flex"), "builds the guests' kernel"),
    SystemPackage("bison", has_command("bison"), "builds the guests' kernel"),
    SystemPackage("bc", has_command("bc"), "builds the guests' kernel"),
    SystemPackage("xz-utils", has_command("xz"), "builds the guests' kernel"),
    SystemPackage("iproute2", has_command("rdma"), "links and soft-RoCE of guests"),
    SystemPackage("ibverbs-providers", Path("/etc/libibverbs.d/rxe.driver").is_file, "transport rdma"),
    SystemPackage("python3-pyverbs", Path("/usr/lib/python3/dist-packages/pyverbs").is_dir, "transport rdma"),
)
"""Without them fabric `guests` and transport `rdma` are not runnable, and nothing else is missing."""
FOR_TESTS = (
    SystemPackage("perftest", has_command("ib_write_bw"), "is compared with transport rdma"),
    SystemPackage("qemu-system-x86", has_command("qemu-system-x86_64"), "guests without a kernel to build"),
    SystemPackage("busybox-static", Path("/usr/share/doc/busybox-static").is_dir, "guests without a kernel to build"),
    SystemPackage("chromium", has_command("chromium"), "browser tests"),
    SystemPackage("slurmctld", Path("/usr/sbin/slurmctld").is_file, "tests of clusters"),
    SystemPackage("slurmd", Path("/usr/sbin/slurmd").is_file, "tests of clusters"),
    SystemPackage("slurm-client", has_command("sbatch"), "tests of clusters"),
    SystemPackage("munge", Path("/usr/sbin/munged").is_file, "tests of clusters"),
    SystemPackage("openssh-client", has_command("ssh"), "tests of clusters"),
    SystemPackage(
        "fonts-dejavu-core", lambda: Path("/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf").is_file(), "browser tests"
    ),
)
FOR_COMPARISON = (
    SystemPackage("iperf3", has_command("iperf3"), "suite crosscheck"),
    SystemPackage("hyperfine", has_command("hyperfine"), "suite crosscheck"),
    SystemPackage("time", has_command("time"), "suite crosscheck"),
    SystemPackage("libsimgrid-dev", Path("/usr/include/simgrid/s4u.hpp").is_file, "suite crosscheck"),
)
"""Other benchmarks' tools, which are compared with ours: without them their arms are not runnable, and nothing else is
missing."""


def check_processor(machine: str, system: str) -> None:
    """Raise unless this is x86-64 Linux, for which the pinned wheels exist."""
    if system != "Linux" or machine not in ("x86_64", "AMD64"):
        raise SetupError(f"the pinned packages exist for Linux on x86-64 only, and this is {system} on {machine}")


def missing_packages(with_tests: bool) -> list[SystemPackage]:
    """Required system packages that are not installed."""
    return [
        package for package in (*ALWAYS, *((*FOR_GUESTS, *FOR_TESTS) if with_tests else ())) if not package.present()
    ]


def missing_tools() -> list[SystemPackage]:
    """Optional packages that are not installed."""
    return [package for package in (*FOR_COMPARISON, *FOR_GUESTS) if not package.present()]


def missed(tools: list[SystemPackage]) -> str:
    """What does not work without these packages."""
    return ", ".join(
        f"{why} ({' '.join(tool.name for tool in tools if tool.why == why)})"
        for why in dict.fromkeys(tool.why for tool in tools)
    )


def install_command(names: list[str], prefix: str = "") -> str:
    """The command that installs the packages."""
    return f"{prefix}apt-get update && {prefix}apt-get install -y --no-install-recommends " + " ".join(names)


def need_packages(missing: list[SystemPackage], is_root: bool, has_apt: bool) -> None:
    """Raise with the command to type, unless this user may install packages."""
    names = [package.name for package in missing]
    if not missing or (is_root and has_apt):
        return
    if not has_apt:
        raise SetupError(
            "system packages are missing, and this is not Debian; install what Debian calls: " + " ".join(names)
        )
    raise SetupError(
        "system packages are missing, and only root can install them; type: " + install_command(names, "sudo ")
    )


def install_packages(missing: list[SystemPackage], log: Path, steps: Steps) -> None:
    """Install packages with apt-get. An interrupted dpkg is repaired first, and no daemon of a package is started."""
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    wait = ["-o", "DPkg::Lock::Timeout=300"]
    with tempfile.TemporaryDirectory() as folder:
        quiet = ["-o", f"DPkg::Path={os.pathsep.join([str(starts_nothing(Path(folder))), *SYSTEM_PATH])}"]
        commands = [
            ["dpkg", "--configure", "-a"],
            ["apt-get", *wait, "update"],
            [
                "apt-get",
                *wait,
                *quiet,
                "install",
                "-y",
                "--no-install-recommends",
                *[package.name for package in missing],
            ],
        ]
        for argv in commands:
            try:
                run(argv, log, env=env, line=lambda text: steps.progress(text[:28]))
            except CommandError as error:
                raise SetupError(
                    f"`{' '.join(argv)}` failed (is the machine offline?); its output is in {log}"
                ) from error


def starts_nothing(folder: Path) -> Path:
    """Fill a folder with programs that do nothing, named like the commands with which packages start their daemons."""
    for name in ("invoke-rc.d", "deb-systemd-invoke"):
        (folder / name).symlink_to("/bin/true")
    return folder


def check_disk(folder: Path, needed: int) -> None:
    """Raise unless the file system of `folder` has `needed` bytes free."""
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    free = shutil.disk_usage(existing).free
    if free < needed:
        raise SetupError(
            f"{needed / GB:.1f} GB are needed under {folder}, and {free / GB:.1f} GB are free; "
            "XDG_CACHE_HOME can name another disk"
        )


def machine_and_system() -> tuple[str, str]:
    """Processor and operating system of this machine."""
    return platform.machine(), platform.system()
