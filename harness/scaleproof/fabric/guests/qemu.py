"""A node as a virtual machine in software emulation with Debian's stock kernel: no kernel has to be built, but
everything takes ten times as long."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path
from typing import IO

from scaleproof.fabric.guests.bridge import mac, tap
from scaleproof.fabric.guests.guest_plan import GuestPlan

_START = """export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
exec {program}
"""
_KERNEL = (
    "console=ttyS0 quiet panic=-1 tsc=reliable nokaslr mitigations=off audit=0 "
    "random.trust_cpu=on net.ifnames=0 no_timer_check"
)


def boot(
    kernel: Path, plan: GuestPlan, folder: Path, node: int, program: list[str], console: IO[bytes]
) -> subprocess.Popen[bytes]:
    """Starts one node; its first process after the archive's script is `program`. `kernel`: folder of the stock kernel
    and its archive."""
    start = folder / f"start-{node}"
    start.write_text(_START.format(program=shlex.join(program)))
    return subprocess.Popen(
        command(kernel, plan, node, start),
        stdin=subprocess.DEVNULL,
        stdout=console,
        stderr=console,
        start_new_session=True,
    )


def command(stock: Path, plan: GuestPlan, node: int, start: Path) -> list[str]:
    """QEMU's command line: this machine's files (read-only) and the shared folder over 9p, the tap, the console on
    standard output."""
    return [
        "qemu-system-x86_64",
        "-M",
        "q35",
        "-accel",
        "tcg,thread=multi,tb-size=256",
        "-cpu",
        "max",
        "-smp",
        str(plan.cpus),
        "-m",
        str(plan.memory_mib),
        "-nodefaults",
        "-no-user-config",
        "-display",
        "none",
        "-no-reboot",
        "-kernel",
        str(stock / "vmlinux"),
        "-initrd",
        str(stock / "initrd"),
        "-append",
        f"{_KERNEL} scaleproof.start={start}",
        "-serial",
        "stdio",
        "-device",
        "virtio-rng-pci",
        "-fsdev",
        "local,id=root,path=/,security_model=none,readonly=on,multidevs=remap",
        "-device",
        "virtio-9p-pci,fsdev=root,mount_tag=root",
        "-fsdev",
        f"local,id=shared,path={start.parent},security_model=none",
        "-device",
        "virtio-9p-pci,fsdev=shared,mount_tag=shared",
        "-netdev",
        f"tap,id=wire,ifname={tap(node)},script=no,downscript=no",
        "-device",
        f"virtio-net-pci,netdev=wire,mac={mac(node)},romfile=,host_mtu={plan.mtu}",
    ]
