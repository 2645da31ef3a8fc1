"""Runs the same function on shares of a list, in several processes. Results are in the order of the items."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from math import ceil
from multiprocessing.connection import Connection
from typing import TypeVar

from scaleproof.core.uninterrupted import END_SIGNALS, uninterrupted

Item = TypeVar("Item")
Result = TypeVar("Result")
PARENT_POLL_S = 0.2
"""How often a worker checks that its parent is alive."""
_FORK = multiprocessing.get_context("fork")
"""A suite's metrics cannot be pickled: a worker has them from its parent's memory. Results are pickled."""


def in_parallel(work: Callable[[Sequence[Item]], Result], items: Sequence[Item], processes: int) -> list[Result]:
    """Call `work` on one share of neighbouring items per process; this process takes the first share. If a worker
    cannot be forked, fails or is killed, its share is computed here. All workers have ended when this returns."""
    size = max(ceil(len(items) / max(processes, 1)), 1)
    shares = [items[start : start + size] for start in range(0, len(items), size)]
    with ExitStack() as workers:
        receivers: list[Connection] = []
        with suppress(OSError):  # a limit of processes or of memory
            for share in shares[1:]:
                receivers.append(_start_worker(work, share, workers))
        results = [work(share) for share in shares[:1]]
        for number, share in enumerate(shares[1:]):
            try:
                results.append(receivers[number].recv())
            except (EOFError, IndexError):
                results.append(work(share))
    return results


def _start_worker(work: Callable[[Sequence[Item]], Result], share: Sequence[Item], workers: ExitStack) -> Connection:
    receiver, sender = _FORK.Pipe(duplex=False)
    workers.enter_context(receiver)
    with sender:  # closed here, so that the receiver notices the end of the worker
        worker = _FORK.Process(target=_send_result, args=(sender, work, share, os.getpid()), daemon=True)
        with uninterrupted():
            worker.start()
            workers.callback(worker.join)
            workers.callback(worker.kill)
    return receiver


def _send_result(
    sender: Connection, work: Callable[[Sequence[Item]], Result], share: Sequence[Item], parent: int
) -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends the worker without a traceback
    signal.pthread_sigmask(signal.SIG_UNBLOCK, END_SIGNALS)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    with suppress(Exception):  # the parent computes the share again and raises the error
        sender.send(work(share))


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(PARENT_POLL_S)
    os._exit(1)
