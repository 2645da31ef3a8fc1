"""The one error that a user's mistake raises."""


class SpecError(ValueError):
    """What a user wrote is wrong. The message is one line: where, what, and the nearest valid thing. The command ends with exit code 2."""
