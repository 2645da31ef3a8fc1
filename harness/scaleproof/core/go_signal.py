"""The parent of ranks imports at once and begins when the supervisor says so, over a socket that is its standard input.
Both sides of that."""

from __future__ import annotations

import os
import signal
import socket

from scaleproof.core.uninterrupted import END_SIGNALS

WAIT_FOR_GO = "--wait-for-go"
"""Argument of a parent that begins when told."""
IMPORTED, GO = b"i", b"g"


def wait_for_go() -> None:
    """In the parent: say that all is imported, wait for the word to begin, and leave ranks an empty standard input. The
    process ends where the supervisor has gone. Signals that were blocked at its start are allowed from now on."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, END_SIGNALS)
    with socket.socket(fileno=os.dup(0)) as supervisor:
        supervisor.sendall(IMPORTED)
        told = supervisor.recv(1)
    if told != GO:
        os._exit(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
