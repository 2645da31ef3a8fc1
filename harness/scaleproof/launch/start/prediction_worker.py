"""Predicts launches for another process: `python -m scaleproof.launch.start.prediction_worker IN OUT`. Through the
pipe IN come the simulator and then launches; for each goes through OUT what it predicts, or None where that fails."""

from __future__ import annotations

import signal
import sys
from contextlib import suppress
from multiprocessing.connection import Connection

from scaleproof.core.predicted import Predicted
from scaleproof.core.uninterrupted import END_SIGNALS
from scaleproof.launch.start.core_slots import core_slot
from scaleproof.launch.start.simulated_launch import Simulator
from scaleproof.spec.plan import PlannedLaunch


def answer(asked: Connection, answers: Connection) -> None:
    """Until the other side has ended."""
    simulator: Simulator = asked.recv()
    with suppress(EOFError):
        while True:
            answers.send(_predicted(simulator, asked.recv()))


def _predicted(simulator: Simulator, launch: PlannedLaunch) -> Predicted | None:
    with suppress(Exception), core_slot():  # the other process predicts it once more and raises the error
        return simulator.predict(launch)
    return None


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_UNBLOCK, END_SIGNALS)
    its_in, its_out = (int(argument) for argument in sys.argv[1:3])
    with suppress(KeyboardInterrupt, ConnectionError, EOFError):
        answer(Connection(its_in, writable=False), Connection(its_out, readable=False))
