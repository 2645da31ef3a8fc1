"""Fits what all-reduces take beside their messages: the time of a call, and gamma (s per byte reduced) by the size of
the array, since an array that does not stay in the caches takes longer per byte."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scaleproof.simulate.alpha_beta_fit import Goodness, Segment, checked, fit_segments, goodness
from scaleproof.simulate.collective_rounds import Rounds, messages_s, rounds_of
from scaleproof.simulate.cost_fit import Line, Value, intervals
from scaleproof.simulate.gamma_between import gamma_between

LEAST_NBYTES = 65536
"""Of a smaller array, what its bytes take is lost in the time of the call."""


@dataclass(frozen=True, slots=True)
class Gamma:
    """s per byte reduced of arrays of `nbytes`."""

    nbytes: int
    value: Value


@dataclass(frozen=True, slots=True)
class Reduction:
    """The time of a call, gammas, the predicted time of every size with all of them fitted to the other sizes, and how
    well that fits."""

    call: Value
    gammas: tuple[Gamma, ...]
    predicted: np.ndarray
    goodness: Goodness


@dataclass(frozen=True, slots=True)
class _Calls:
    """All-reduces of `nbytes` took `times`, of which their messages `alone`, all in s; the busiest rank reduces the
    share `reduced` of an array."""

    reduced: float
    nbytes: np.ndarray
    times: np.ndarray
    alone: np.ndarray

    def without(self, index: int) -> _Calls:
        """All sizes but one."""
        others = np.arange(len(self.nbytes)) != index
        return _Calls(self.reduced, self.nbytes[others], self.times[others], self.alone[others])


def fit_reduction(
    label: str,
    line: Line,
    algorithm: str,
    ranks: int,
    nbytes: np.ndarray,
    times: np.ndarray,
    sent: tuple[np.ndarray, np.ndarray],
) -> Reduction:
    """Fits what an all-reduce takes beside its messages, which cost what `line` says: the time of a call, whatever its
    size, and gammas, all >= 0. `sent`: the sizes and times that `line` was fitted to. The intervals resample both the
    launches of the all-reduce and those of the transfer. Raises SpecError for too few sizes."""
    checked(label, nbytes, times)
    rounds = rounds_of(algorithm, "all_reduce", ranks)
    medians = np.median(times, axis=0)
    calls = _Calls(rounds.reduced, nbytes, medians, messages_s(line.segments, rounds, nbytes))
    spans = _spans(line, rounds, nbytes, times, sent)
    call, *gammas = (Value(float(value), *span) for value, span in zip(_fitted(calls), spans, strict=True))
    predicted = _each_from_the_others(calls)
    sizes = map(int, nbytes[_measures(nbytes)])
    return Reduction(
        call,
        tuple(Gamma(size, gamma) for size, gamma in zip(sizes, gammas, strict=True)),
        predicted,
        goodness(nbytes, medians, predicted),
    )


def predict(rounds: Rounds, segments: tuple[Segment, ...], nbytes: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Time in s of an all-reduce at every size, with the time of a call and gammas fitted to the other sizes."""
    return _each_from_the_others(_Calls(rounds.reduced, nbytes, times, messages_s(segments, rounds, nbytes)))


def _measures(nbytes: np.ndarray) -> np.ndarray:
    """Which sizes have a gamma; the largest has one in any case."""
    return np.asarray((nbytes >= LEAST_NBYTES) | (nbytes == nbytes.max()))


def _spans(
    line: Line, rounds: Rounds, nbytes: np.ndarray, times: np.ndarray, sent: tuple[np.ndarray, np.ndarray]
) -> list[tuple[float | None, float | None]]:
    """Intervals of the time of a call and of the gammas."""
    cuts = tuple(int(np.searchsorted(sent[0], segment.upto_nbytes or 0, "right")) for segment in line.segments[:-1])

    def parameters(transfers: np.ndarray, launches: np.ndarray) -> np.ndarray:
        segments = fit_segments(sent[0], np.median(sent[1][transfers], axis=0), cuts)
        alone = messages_s(segments, rounds, nbytes)
        return _fitted(_Calls(rounds.reduced, nbytes, np.median(times[launches], axis=0), alone))

    return intervals(parameters, [len(sent[1]), len(times)], 1 + int(_measures(nbytes).sum()))


def _fitted(calls: _Calls) -> np.ndarray:
    """s of a call, then s per byte reduced at each size that has a gamma, none below 0."""
    call, _ = _line(calls)
    measures = _measures(calls.nbytes)
    rest = (calls.times - calls.alone - call)[measures]
    return np.append(call, np.maximum(rest / (calls.reduced * calls.nbytes[measures]), 0.0))


def _line(calls: _Calls) -> np.ndarray:
    """s of a call and s per byte reduced, with the least sum of squared relative errors, neither below 0."""
    from scipy.optimize import nnls  # takes 0.3 s, which a command that fits nothing should not

    reduced = calls.reduced * calls.nbytes
    largest = float(reduced.max()) or 1.0  # scales both columns alike, since the solver's tolerance is absolute
    rows = np.column_stack([1 / calls.times, reduced / largest / calls.times])
    (call, gamma), _ = nnls(rows, 1 - calls.alone / calls.times)
    return np.array([call, gamma / largest])


def _each_from_the_others(calls: _Calls) -> np.ndarray:
    """Time in s at every size, fitted to the other sizes."""
    times = []
    for index, nbytes in enumerate(calls.nbytes):
        others = calls.without(index)
        call, *gammas = _fitted(others)
        gamma = gamma_between(nbytes, others.nbytes[_measures(others.nbytes)], np.array(gammas))
        times.append(calls.alone[index] + call + calls.reduced * nbytes * gamma)
    return np.array(times)
