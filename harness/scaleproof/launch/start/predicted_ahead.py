"""Predicts launches of fabric `simulated` two at a time, in processes of their own, as nothing of them is timed. The
caller asks for one after the other, and writes their records in the order of the plan."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from multiprocessing.connection import Connection
from queue import SimpleQueue
from types import TracebackType
from typing import NamedTuple, Self

from scaleproof.core.predicted import Predicted
from scaleproof.core.uninterrupted import uninterrupted
from scaleproof.launch.start.execute import THREAD_VARIABLES
from scaleproof.launch.start.simulated_launch import Simulator
from scaleproof.rank.process_lifetime import ending_with_this_process
from scaleproof.record.host import usable_cores
from scaleproof.spec.case import AnyCase
from scaleproof.spec.plan import PlannedLaunch

PROCESSES = 2
LEAST = 8
"""Fewer launches than these are predicted in this process: another one takes about 2 s to start."""
WORKER = "scaleproof.launch.start.prediction_worker"


class _Pipes(NamedTuple):
    """To another process and from it."""

    there: Connection
    back: Connection

    def close(self) -> None:
        self.there.close()
        self.back.close()


class PredictedAhead:
    """A simulator that may have begun a prediction before it is asked for it. Whatever goes wrong in another process,
    a limit of memory or an error of a program, the launch is predicted once more here, which raises the error."""

    def __init__(self, simulator: Simulator) -> None:
        self._simulator = simulator
        self._begun: dict[int, Future[Predicted | None]] = {}
        self._idle = SimpleQueue[_Pipes]()
        self._threads: ThreadPoolExecutor | None = None
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Ends the other processes, whatever they are at."""
        for process in self._processes:
            process.kill()
            process.wait()
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)
        while not self._idle.empty():
            self._idle.get().close()

    def inputs(self, case: AnyCase, programs: str = "") -> str:
        """See Simulator."""
        return self._simulator.inputs(case, programs)

    def byte_s(self, case: AnyCase) -> float:
        """See Simulator."""
        return self._simulator.byte_s(case)

    def predict(self, launch: PlannedLaunch) -> Predicted:
        """See Simulator."""
        begun = self._begun.pop(launch.order, None)
        found = begun.result() if begun is not None else None
        return self._simulator.predict(launch) if found is None else found

    def begin(self, launches: Sequence[PlannedLaunch], expected: int) -> None:
        """Begin launches that will be asked for next. `expected`: how many are still to be predicted in all."""
        if self._threads is None:
            if expected < LEAST or usable_cores() < PROCESSES:
                return
            self._threads = ThreadPoolExecutor(PROCESSES)
            for _ in range(PROCESSES):
                self._idle.put(self._start())
        for launch in launches:
            if launch.order not in self._begun:
                self._begun[launch.order] = self._threads.submit(self._ask, launch)

    def _start(self) -> _Pipes:
        """Another process, in a session of its own: Ctrl-C reaches only this one, which ends it."""
        (its_in, there), (back, its_out) = os.pipe(), os.pipe()
        command = ending_with_this_process([sys.executable, "-m", WORKER, str(its_in), str(its_out)])
        with uninterrupted():
            self._processes.append(
                subprocess.Popen(command, pass_fds=[its_in, its_out], start_new_session=True, env=_sharing_cores())
            )
        os.close(its_in)
        os.close(its_out)
        pipes = _Pipes(Connection(there, readable=False), Connection(back, writable=False))
        pipes.there.send(self._simulator)
        return pipes

    def _ask(self, launch: PlannedLaunch) -> Predicted | None:
        """None where the prediction failed, or its process has ended."""
        pipes = self._idle.get()
        try:
            pipes.there.send(launch)
            found: Predicted | None = pipes.back.recv()
        except (EOFError, OSError):
            found = None
        self._idle.put(pipes)
        return found


def _sharing_cores() -> dict[str, str]:
    """The environment of another process: as many threads of arithmetic as its share of the cores, since those of all
    processes would wait for each other in turns; or what the caller's environment says."""
    threads = str(max(1, usable_cores() // PROCESSES))
    return {**dict.fromkeys(THREAD_VARIABLES, threads), **os.environ}
