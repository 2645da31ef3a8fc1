"""For all tests. Property tests have no time limit per example: a machine that is busy with something else is no fault
of the code."""

import signal

from hypothesis import settings

settings.register_profile("scaleproof", deadline=None)
settings.load_profile("scaleproof")
if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
):  # a shell's background job; the commands that the tests interrupt would inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)
