"""Property tests have no time limit per example: a machine that is busy with something else is no fault of the code."""

from hypothesis import settings

settings.register_profile("scaleproof", deadline=None)
settings.load_profile("scaleproof")
