"""For all tests. Property tests have no time limit per example: a machine that is busy with something else is no fault
of the code."""

import signal

from hypothesis import settings

pytest_plugins = ["tests.skipped", "tests.phases"]

settings.register_profile("scaleproof", deadline=None)
settings.load_profile("scaleproof")
# Background jobs of a shell ignore SIGINT, and the commands that the tests interrupt would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
