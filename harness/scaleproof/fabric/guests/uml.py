"""A node as a User-Mode Linux kernel: an ordinary process. Its root is this machine's file system, with a layer in
memory for changes."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path
from typing import IO

from scaleproof.fabric.guests.bridge import mac, tap
from scaleproof.fabric.guests.guest_plan import GuestPlan

_INIT = """#!/bin/sh
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
mount -t tmpfs tmpfs /mnt && mkdir /mnt/up /mnt/work /mnt/new
mount -t overlay -o lowerdir=/,upperdir=/mnt/up,workdir=/mnt/work overlay /mnt/new || exit 1
N=/mnt/new
mount -t proc proc $N/proc; mount -t sysfs sys $N/sys; mount -t devtmpfs dev $N/dev
mkdir -p $N/dev/shm $N/dev/pts
mount -t tmpfs shm $N/dev/shm; mount -t tmpfs run $N/run; mount -t devpts pts $N/dev/pts
mkdir -p $N{folder} && mount -t hostfs -o {folder} none $N{folder}
exec chroot $N {program} </dev/null
"""


def boot(
    kernel: Path, plan: GuestPlan, folder: Path, node: int, program: list[str], console: IO[bytes]
) -> subprocess.Popen[bytes]:
    """Starts the kernel of one node; its first process is `program`. The node's memory is an unnamed file in TMPDIR,
    which takes only as much space as the node uses."""
    temporary = Path(os.environ["TMPDIR"])
    init = temporary / f"init-{node}"
    init.write_text(_INIT.format(folder=shlex.quote(str(folder)), program=shlex.join(program)))
    init.chmod(0o700)
    return subprocess.Popen(
        command(kernel, plan, node, init, temporary),
        stdin=subprocess.DEVNULL,
        stdout=console,
        stderr=console,
        start_new_session=True,
    )


def command(kernel: Path, plan: GuestPlan, node: int, init: Path, temporary: Path) -> list[str]:
    """The kernel's command line. `temporary` must be a short path, since socket paths are limited to 107 bytes."""
    return [
        str(kernel),
        f"mem={plan.memory_mib}M",
        f"umid=node{node}",
        f"uml_dir={temporary}",
        "rootfstype=hostfs",
        "rootflags=/",
        "ro",
        f"init={init}",
        "con=null",
        "con0=null,fd:1",
        "ssl=null",
        "quiet",
        "panic=-1",
        f"vec0:transport=tap,ifname={tap(node)},depth=64,mac={mac(node)},mtu={plan.mtu}",
    ]
