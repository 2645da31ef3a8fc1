"""Predicts launches for another process: `python -m scaleproof.launch.start.prediction_worker FD`. Over the socket FD
come the simulator and then launches; for each goes back what it predicts, or None where that fails."""

from __future__ import annotations

import signal
import sys
from contextlib import suppress
from multiprocessing.connection import Connection

from scaleproof.core.predicted import Predicted
from scaleproof.core.uninterrupted import END_SIGNALS
from scaleproof.launch.start.simulated_launch import Simulator
from scaleproof.spec.plan import PlannedLaunch


def serve(wire: Connection) -> None:
    """Answer until the other side has ended."""
    simulator: Simulator = wire.recv()
    with suppress(EOFError):
        while True:
            wire.send(_predicted(simulator, wire.recv()))


def _predicted(simulator: Simulator, launch: PlannedLaunch) -> Predicted | None:
    with suppress(Exception):  # the other process predicts it once more and raises the error
        return simulator.predict(launch)
    return None


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_UNBLOCK, END_SIGNALS)
    with suppress(KeyboardInterrupt, ConnectionError), Connection(int(sys.argv[1])) as to_creator:
        serve(to_creator)
