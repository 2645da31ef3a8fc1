"""For QEMU: Debian's stock kernel out of its package, and an archive with the modules that a node needs. Nothing is
compiled, nothing installed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from scaleproof.fabric.guests import guest_kernels
from tools.setup.console import SetupError, Steps, run

NEEDED = ("qemu-system-x86", "busybox-static", "xz-utils")
META = "linux-image-amd64"
MODULES = (
    "crc32_generic",
    "crc32c_generic",
    "virtio_pci",
    "virtio_console",
    "9pnet_virtio",
    "9p",
    "overlay",
    "virtio_net",
    "virtio_rng",
    "sch_tbf",
    "sch_netem",
    "ib_uverbs",
    "rdma_ucm",
    "rdma_rxe",
)
"""In the order of loading. soft-RoCE requests the first two by name when it starts; no dependency declares them."""
_XZ = b"\xfd7zXZ\x00"
_INIT = r"""#!/bin/busybox sh
b=/bin/busybox
$b mkdir -p /proc /sys /dev /lower /over /new
$b mount -t proc proc /proc; $b mount -t sysfs sys /sys; $b mount -t devtmpfs dev /dev
for m in $($b cat /modules.list); do $b insmod /mod/$m; done
O=trans=virtio,version=9p2000.L,msize=512000
$b mount -t 9p -o $O,ro,cache=loose root /lower
$b mount -t tmpfs -o size=60% tmpfs /over; $b mkdir /over/up /over/work
$b mount -t overlay -o lowerdir=/lower,upperdir=/over/up,workdir=/over/work overlay /new || exit 1
for d in proc sys dev; do $b mount --move /$d /new/$d; done
$b mkdir -p /new/dev/shm /new/dev/pts /new/run
$b mount -t tmpfs shm /new/dev/shm; $b mount -t tmpfs run /new/run; $b mount -t devpts pts /new/dev/pts
S=$($b sed 's/.*scaleproof.start=\([^ ]*\).*/\1/' /new/proc/cmdline); F=${S%/*}
$b mkdir -p "/new$F"; $b mount -t 9p -o $O,cache=none shared "/new$F"
exec $b switch_root /new /bin/sh "$S" </new/dev/null >/new/dev/console 2>&1
"""


def make_stock(log: Path, steps: Steps) -> Path:
    """The folder with `vmlinux` and `initrd`; SetupError when a required tool or package is missing."""
    if absent := [
        name for name in ("qemu-system-x86_64", "busybox", "xz", "apt-get", "dpkg-deb") if shutil.which(name) is None
    ]:
        raise SetupError(
            f"guests under QEMU need {', '.join(absent)}; "
            f"type: apt-get install --no-install-recommends {' '.join(NEEDED)}"
        )
    package = _package()
    target = (
        guest_kernels.folder()
        / f"qemu-{package.removeprefix('linux-image-')}-{guest_kernels.stock_digest(_INIT, MODULES)}"
    )
    if (target / "initrd").exists():
        return target
    part = guest_kernels.folder() / f".part-{os.getpid()}"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    try:
        steps.progress(package)
        run(["apt-get", "-q", "download", package], log, cwd=part, line=lambda _: steps.progress("downloading"))
        run(["dpkg-deb", "-x", str(next(part.glob("*.deb"))), str(part / "tree")], log)
        _uncompress(next((part / "tree" / "boot").glob("vmlinuz-*")), part / "vmlinux")
        (part / "initrd").write_bytes(archive(next((part / "tree" / "lib" / "modules").iterdir())))
        shutil.rmtree(part / "tree")
        next(part.glob("*.deb")).unlink()
        shutil.rmtree(target, ignore_errors=True)
        part.rename(target)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return target


def _package() -> str:
    output = subprocess.run(["apt-cache", "depends", META], capture_output=True, text=True, check=False).stdout
    match = re.search(r"linux-image-\d\S*", output)
    if not match:
        raise SetupError(f"apt knows no package {META}; type `apt-get update`")
    return match.group(0)


def _uncompress(image: Path, target: Path) -> None:
    """Extract the ELF file from the kernel image. QEMU starts it directly, which is faster than an image that unpacks
    itself in emulation."""
    data = image.read_bytes()
    process = subprocess.run(
        ["xz", "-dc", "--single-stream"], input=data[data.find(_XZ) :], capture_output=True, check=False
    )
    if process.stdout[:4] != b"\x7fELF":
        raise SetupError(f"{image.name} has no kernel packed with xz inside")
    target.write_bytes(process.stdout)


def archive(modules: Path) -> bytes:
    """An initrd (cpio, newc): busybox, the modules in the order in which they load, and a script that mounts this
    machine's files."""
    order = list(dict.fromkeys(_with_dependencies(modules)))
    files = [
        ("bin", b"", 0o040755),
        ("mod", b"", 0o040755),
        ("bin/busybox", Path(str(shutil.which("busybox"))).read_bytes(), 0o100755),
    ]
    files += [
        ("init", _INIT.encode(), 0o100755),
        ("modules.list", "".join(f"{path.name}\n" for path in order).encode(), 0o100644),
    ]
    files += [(f"mod/{path.name}", path.read_bytes(), 0o100644) for path in order]
    return b"".join(_entry(number, *file) for number, file in enumerate([*files, ("TRAILER!!!", b"", 0)], 1))


def _entry(number: int, name: str, body: bytes, mode: int) -> bytes:
    encoded = name.encode() + b"\0"
    numbers = (number, mode, 0, 0, 1, 0, len(body), 0, 0, 0, 0, len(encoded), 0)
    head = b"070701" + b"".join(b"%08x" % value for value in numbers) + encoded
    return head + b"\0" * (-len(head) % 4) + body + b"\0" * (-len(body) % 4)


def _with_dependencies(modules: Path) -> Iterator[Path]:
    """MODULES in the order of their dependencies, without those that are built into the kernel."""
    where = {_name(path.name): path for path in modules.glob("kernel/**/*.ko")}
    inside = {_name(Path(line).name) for line in (modules / "modules.builtin").read_text().splitlines()}

    def follow(name: str) -> Iterator[Path]:
        if name in inside:
            return
        if name not in where:
            raise SetupError(f"the stock kernel has no module {name}")
        match = re.search(rb"\0depends=([^\0]*)\0", where[name].read_bytes())
        for other in (match.group(1).decode() if match else "").split(","):
            if other:
                yield from follow(_name(other))
        yield where[name]

    for name in MODULES:
        yield from follow(_name(name))


def _name(file: str) -> str:
    return file.removesuffix(".ko").replace("-", "_")
