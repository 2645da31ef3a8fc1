"""Fitted costs of a machine, as stored in results/machines/<id>/costs.json."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from scaleproof.core.atomic_write import read_form, write_form
from scaleproof.core.record_schema import Evidence

FILE = "costs.json"


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Parameter(_Part):
    """A fitted value with its 95 % interval over launches; no interval below 6 launches."""

    value: float
    low: float | None
    high: float | None


class SegmentCost(_Part):
    """Messages up to `upto_nbytes` (None: any size) take alpha_s + beta_s_per_byte * n."""

    upto_nbytes: int | None
    alpha_s: Parameter
    beta_s_per_byte: Parameter


class Fit(_Part):
    """How well a model fits the medians: R^2 of logarithms, relative errors, and the size with the largest error."""

    r_squared: float
    median_error: float
    worst_error: float
    worst_nbytes: int


class Point(_Part):
    """One message size: the measured median over launches in s with its interval, and the model's time."""

    nbytes: int
    measured_s: float
    low_s: float | None
    high_s: float | None
    model_s: float


class LineCost(_Part):
    """alpha + beta n of a call over n bytes. `aicc`, by number of segments, decided how many segments there are."""

    launches: int
    segments: tuple[SegmentCost, ...]
    fit: Fit
    aicc: dict[int, float]
    points: tuple[Point, ...]


class GammaCost(_Part):
    """s per byte reduced of arrays of `nbytes`."""

    nbytes: int
    s_per_byte: Parameter


class RoundsCost(_Part):
    """What a call takes beside its messages, given the transfer's alpha and beta and the rounds of `algorithm`: call_s,
    whatever its size, and gamma, by the size of the array. `assumed`: the library does not report which algorithm it
    runs.

    `points` and `fit` are predictions: all are fitted to all sizes but the predicted one.
    """

    algorithm: str
    assumed: bool
    call_s: Parameter
    gammas: tuple[GammaCost, ...]
    fit: Fit
    points: tuple[Point, ...]


class AllReduceCost(_Part):
    """All-reduces of one number of ranks: the whole call as a line, and as rounds of messages with bytes to reduce."""

    ranks: int
    call: LineCost
    rounds: RoundsCost | None
    """None: the transport has no ping-pong, so the time of messages and of reduction cannot be separated."""


class TransportCost(_Part):
    """Costs of one arm: where it ran, and the fitted values."""

    arm: str
    transport: str
    buffers: str = "registered"
    library: str
    fabric: str
    nodes: int
    link_mbit: float | None
    link_delay_ms: float
    interface: str
    evidence: Evidence
    transfer: LineCost | None
    """One message from a rank to another, one way; None: the transport has no sends and receives."""
    all_reduces: tuple[AllReduceCost, ...]
    runs: tuple[str, ...]
    """Launches that the costs were fitted to."""


class Costs(_Part):
    """Costs of one machine at one time. A new fit replaces them; the records that they were fitted to stay.
    `handover_s`: from one thread of a process to another; None: no launch measured it."""

    schema_version: Literal[3] = 3
    machine: str
    code: str
    """Digest of the code that measured."""
    fitted_at: str
    suite: str
    experiment: str
    size: str
    transports: tuple[TransportCost, ...]
    handover_s: Parameter | None = None


def costs_file(results: Path, machine: str) -> Path:
    """Path of a machine's costs."""
    return results / "machines" / machine / FILE


def read_costs(results: Path, machine: str) -> Costs | None:
    """A machine's costs; None when none were fitted. Raises SpecError for a file of another version."""
    return read_form(costs_file(results, machine), Costs, "no costs of this version; `scaleproof fit` makes new ones")


def write_costs(results: Path, costs: Costs) -> Path:
    """Writes a machine's costs atomically."""
    return write_form(costs_file(results, costs.machine), costs)
