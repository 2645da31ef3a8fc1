"""How long a call takes from the thread that submits it to the communication thread of a rank, and back: the call
itself does nothing. Event `handover`, once per call: from the submission until the submitting thread has the result."""

from __future__ import annotations

import time

from scaleproof.core.context import RankContext
from scaleproof.core.recorder import now
from scaleproof.programs.common import mark, timed_iterations
from scaleproof.spec.case import OwnCase
from scaleproof.strategies.communication_thread import CommunicationThread
from scaleproof.transports.contract import Done

IDLE_S = 1e-3
"""Between two calls, so that the communication thread sleeps when the next one comes, as it does during compute."""


def run(context: RankContext) -> None:
    """Submits calls one at a time."""
    case = context.case
    assert isinstance(case, OwnCase)
    thread, ended = CommunicationThread(), 0
    context.at(0, "hand-overs")
    mark(context, "start", 0)
    for iteration in timed_iterations(context, case.warmup, case.iterations):
        time.sleep(IDLE_S)
        started = now()
        thread.wait(thread.submit(0, Done))
        context.recorder.add("handover", iteration, started, now())
        ended += len(thread.drain())
    mark(context, "end", 0)
    thread.close()
    context.check("handover", ended == case.warmup + case.iterations, f"{ended} calls have ended")
