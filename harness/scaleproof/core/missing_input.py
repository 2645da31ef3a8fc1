"""The error for an input that is absent and that a command of ours can make."""

from __future__ import annotations

from scaleproof.spec.errors import SpecError


class MissingInput(SpecError):
    """`reason` says what is absent, `advice` what to type; the message is both."""

    def __init__(self, reason: str, advice: str) -> None:
        super().__init__(f"{reason}; {advice}")
        self.reason, self.advice = reason, advice
