"""Fits what a message and its bytes take of a core, on both sides, to processor times of windows of messages."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scaleproof.simulate.alpha_beta_fit import LEAST_SIZES
from scaleproof.simulate.cost_fit import Value, intervals
from scaleproof.spec.errors import SpecError


@dataclass(frozen=True, slots=True)
class WindowTimes:
    """By message size: `nbytes`; `window`: messages of a window; `sender` and `receiver`: s of a core a message, a row
    per launch."""

    nbytes: np.ndarray
    window: np.ndarray
    sender: np.ndarray
    receiver: np.ndarray


@dataclass(frozen=True, slots=True)
class Sides:
    """s a message and s a byte to send, then to receive; the largest relative error and its size."""

    values: tuple[Value, Value, Value, Value]
    worst_error: float
    worst_nbytes: int


def fit_sides(label: str, times: WindowTimes) -> Sides:
    """Least squares of relative errors of medians over launches, nothing below 0. The receiver answers each window with
    a message of a byte, which both sides' times hold. Raises SpecError for times that cannot be fitted."""
    count = len(times.nbytes)
    if count < LEAST_SIZES or not len(times.sender):
        raise SpecError(f"{label}: times of cores at {count} message sizes; a line needs at least {LEAST_SIZES}")
    if not (np.isfinite(times.sender) & (times.sender > 0) & np.isfinite(times.receiver) & (times.receiver > 0)).all():
        raise SpecError(f"{label}: a processor time is missing or zero")
    rows = _rows(times)

    def parameters(launches: np.ndarray) -> np.ndarray:
        return _solved(rows, _medians(times, launches))

    everything = np.arange(len(times.sender))
    values = parameters(everything)
    spans = intervals(parameters, [len(everything)], len(values))
    first, second, third, fourth = (Value(float(each), *span) for each, span in zip(values, spans, strict=True))
    measured = _medians(times, everything)
    errors = np.abs(rows @ values - measured) / measured
    worst = int(np.argmax(errors))
    return Sides((first, second, third, fourth), float(errors[worst]), int(times.nbytes[worst % count]))


def _rows(times: WindowTimes) -> np.ndarray:
    """What each parameter adds to the time of a message: of the sender at every size, then of the receiver."""
    ones, answer, nothing = np.ones(len(times.nbytes)), 1 / times.window, np.zeros(len(times.nbytes))
    sender = np.column_stack([ones, times.nbytes, answer, nothing])
    receiver = np.column_stack([answer, nothing, ones, times.nbytes])
    return np.vstack([sender, receiver])


def _medians(times: WindowTimes, launches: np.ndarray) -> np.ndarray:
    return np.concatenate([np.median(side[launches], axis=0) for side in (times.sender, times.receiver)])


def _solved(rows: np.ndarray, measured: np.ndarray) -> np.ndarray:
    from scipy.optimize import nnls  # takes 0.3 s, which a command that fits nothing should not

    scale = rows.max(axis=0)  # the solver's tolerance is absolute
    found, _ = nnls(rows / scale / measured[:, None], np.ones(len(measured)))
    return np.asarray(found / scale, float)
