"""Time that messages and tensors take of a thread of their ranks."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ProcessorTime:
    """Time of a core that a message takes on one side, in s a message and s a byte."""

    message: float = 0.0
    byte: float = 0.0

    def seconds(self, nbytes: float) -> float:
        """Of a message."""
        return self.message + self.byte * nbytes

    def times(self, factor: float) -> ProcessorTime:
        """All of it times a factor."""
        return ProcessorTime(self.message * factor, self.byte * factor)


@dataclass(frozen=True, slots=True)
class TensorTimes:
    """Time in s that strategy parameter_server takes of a rank's main thread for a tensor (tensor_file.TensorCost)."""

    push: float = 0.0
    begin: float = 0.0
    serve: float = 0.0

    def times(self, factor: float) -> TensorTimes:
        """All of it times a factor."""
        return TensorTimes(self.push * factor, self.begin * factor, self.serve * factor)
