"""The error for a missing input that a command of Scaleproof can make."""

from __future__ import annotations

from scaleproof.spec.errors import SpecError


class MissingInput(SpecError):
    """`reason`: what is missing; `advice`: the command that makes it; the message contains both."""

    def __init__(self, reason: str, advice: str) -> None:
        super().__init__(f"{reason}; {advice}")
        self.reason, self.advice = reason, advice
