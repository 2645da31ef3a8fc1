"""`python -m scaleproof.rank.warm_parent SUPERVISOR`: imports what launches need, and forks a parent of ranks
(parent.py) for each, which the supervisor adopts. Only for launches of which no clock is read: all have the hash seed
and the address layout of this process.

Standard input is a socket. A request is JSON, {"folder", "launch", "arguments", "variables"}, with two open files: the
parent's standard input and its log. The answer is the parent's process id, or 0 where it could not be made."""

from __future__ import annotations

import ctypes
import gc
import json
import os
import socket
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

MODULE = "scaleproof.rank.warm_parent"
REQUEST_MAX = 1 << 20
"""Bytes; the variables of the environment are most of it."""
ADOPTION_S = 10.0
NOBODY = b"0"
"""The answer where no process could be made."""


def main() -> int:
    """Returns 0 when the supervisor closes the socket."""
    gc.disable()  # before any other import, as in fork_ranks.py
    from scaleproof.rank.process_lifetime import die_with_creator

    supervisor = int(sys.argv[1])
    die_with_creator(supervisor)
    with socket.socket(fileno=os.dup(0)) as requests:
        while True:
            message, files, _, _ = socket.recv_fds(requests, REQUEST_MAX, 2)
            if not message:
                return 0
            request = json.loads(message)
            _import_for(Path(request["folder"]))
            _fork(request, files, requests, supervisor)
            for file in files:
                os.close(file)


def _import_for(folder: Path) -> None:
    """What fails here fails in the parent too, which writes it into the launch's log."""
    from scaleproof.core.launch_spec import read_launch_spec
    from scaleproof.rank import parent

    with suppress(Exception):
        launch_spec = read_launch_spec(folder)
        parent.preload(launch_spec.parsed_case, launch_spec.programs)
    gc.freeze()  # collections in a child do not write to imported objects, so that their pages stay shared


def _fork(request: dict[str, Any], files: Sequence[int], requests: socket.socket, supervisor: int) -> None:
    """Its own creator ends at once, so that it becomes a child of the supervisor."""
    if between := os.fork():
        os.waitpid(between, 0)
        return
    try:
        if os.fork():
            os._exit(0)
        _become(request, files)
        _wait_for_adoption(supervisor)
        with requests:
            requests.send(str(os.getpid()).encode())
    except BaseException:
        traceback.print_exc()
        with suppress(OSError), requests:
            requests.send(NOBODY)
        os._exit(1)
    os._exit(_parent())


def _parent() -> int:
    """What the process does once the supervisor knows it."""
    from scaleproof.rank import parent

    try:
        return parent.main()
    except BaseException:
        traceback.print_exc()
        return 1


def _become(request: dict[str, Any], files: Sequence[int]) -> None:
    """A process of the launch: its mark, session, variables, arguments, standard input and log."""
    from scaleproof.core.launch_spec import ENVIRONMENT

    _overwrite(ENVIRONMENT, request["launch"])
    os.setsid()
    os.environ.clear()
    os.environ.update(request["variables"])
    tempfile.tempdir = None
    sys.argv[1:] = request["arguments"]
    stdin, log = files
    for source, target in ((stdin, 0), (log, 1), (log, 2)):
        os.dup2(source, target)
    os.close(stdin)
    os.close(log)


def _overwrite(name: str, value: str) -> None:
    """Write a value over one of the same length where the kernel reads it: /proc/PID/environ shows what a process was
    started with, and teardown looks for the launch there."""
    getenv = ctypes.CDLL(None).getenv
    getenv.restype = ctypes.c_void_p
    place = getenv(name.encode())
    assert place and len(ctypes.string_at(place)) == len(value)
    ctypes.memmove(place, value.encode(), len(value))


def _wait_for_adoption(supervisor: int) -> None:
    until = time.monotonic() + ADOPTION_S
    while os.getppid() != supervisor:
        if time.monotonic() > until:
            raise TimeoutError(f"process {supervisor} adopts no orphans")
        time.sleep(0.001)


if __name__ == "__main__":
    os._exit(main())
