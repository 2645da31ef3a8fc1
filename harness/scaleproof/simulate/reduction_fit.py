"""Fits the time of a collective call and gamma (s per byte reduced) to all-reduces, whose messages are known. Gamma is
in pieces by the size of the array: an array that does not stay in the caches takes longer per byte."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from scaleproof.simulate.alpha_beta_fit import (
    BETTER_BY,
    LEAST_SIZES,
    MOST_SEGMENTS,
    Goodness,
    Segment,
    checked,
    corrected_akaike,
    fit_segments,
    goodness,
)
from scaleproof.simulate.collective_rounds import Rounds, messages_s, rounds_of
from scaleproof.simulate.cost_fit import Line, Value, intervals

Edges = tuple[float, ...]
"""The largest array of each piece but the last, in bytes."""


@dataclass(frozen=True, slots=True)
class Gamma:
    """s per byte reduced of arrays of at most `upto_nbytes` (None: any)."""

    upto_nbytes: int | None
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
    edges = _choose_edges(calls)
    spans = _spans(line, rounds, edges, nbytes, times, sent)
    call, *gammas = (Value(float(value), *span) for value, span in zip(_fitted(calls, edges), spans, strict=True))
    upto = [*map(int, edges), None]
    predicted = _each_from_the_others(calls, edges)
    return Reduction(
        call,
        tuple(Gamma(size, gamma) for size, gamma in zip(upto, gammas, strict=True)),
        predicted,
        goodness(nbytes, medians, predicted),
    )


def predict(rounds: Rounds, segments: tuple[Segment, ...], nbytes: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Time in s of an all-reduce at every size, with the time of a call and gammas fitted to the other sizes."""
    calls = _Calls(rounds.reduced, nbytes, times, messages_s(segments, rounds, nbytes))
    return _each_from_the_others(calls, _choose_edges(calls))


def _spans(
    line: Line, rounds: Rounds, edges: Edges, nbytes: np.ndarray, times: np.ndarray, sent: tuple[np.ndarray, np.ndarray]
) -> list[tuple[float | None, float | None]]:
    """Intervals of the time of a call and of the gammas."""
    cuts = tuple(int(np.searchsorted(sent[0], segment.upto_nbytes or 0, "right")) for segment in line.segments[:-1])

    def parameters(transfers: np.ndarray, launches: np.ndarray) -> np.ndarray:
        segments = fit_segments(sent[0], np.median(sent[1][transfers], axis=0), cuts)
        alone = messages_s(segments, rounds, nbytes)
        return _fitted(_Calls(rounds.reduced, nbytes, np.median(times[launches], axis=0), alone), edges)

    return intervals(parameters, [len(sent[1]), len(times)], len(edges) + 2)


def _fitted(calls: _Calls, edges: Edges) -> np.ndarray:
    """s of a call and s per byte reduced of each piece, with the least sum of squared relative errors, none below 0:
    all are 0 where the messages alone take longer than the measured all-reduces."""
    from scipy.optimize import nnls  # takes 0.3 s, which a command that fits nothing should not

    reduced = _by_piece(calls, edges)
    largest = np.maximum(reduced.max(axis=0), 1.0)  # scales all columns alike: the solver's tolerance is absolute
    rows = np.column_stack([np.ones(len(calls.nbytes)), reduced / largest]) / calls.times[:, None]
    values, _ = nnls(rows, 1 - calls.alone / calls.times)
    return np.asarray(values / np.array([1.0, *largest]))


def _by_piece(calls: _Calls, edges: Edges) -> np.ndarray:
    """Bytes reduced: a row for each size, in the column of its piece."""
    pieces = np.searchsorted(edges, calls.nbytes, side="left")
    return np.where(pieces[:, None] == np.arange(len(edges) + 1), calls.reduced * calls.nbytes[:, None], 0.0)


def _modelled(calls: _Calls, edges: Edges, values: np.ndarray) -> np.ndarray:
    return np.asarray(calls.alone + values[0] + _by_piece(calls, edges) @ values[1:])


def _each_from_the_others(calls: _Calls, edges: Edges) -> np.ndarray:
    """Time in s at every size, fitted to the other sizes."""
    return np.array(
        [_modelled(calls, edges, _fitted(calls.without(each), edges))[each] for each in range(len(calls.nbytes))]
    )


def _choose_edges(calls: _Calls) -> Edges:
    """The pieces that AICc selects, each with at least LEAST_SIZES sizes."""
    count, best = len(calls.nbytes), dict[int, tuple[float, Edges]]()
    for pieces in range(1, MOST_SEGMENTS + 1):
        for cuts in itertools.combinations(range(LEAST_SIZES, count - LEAST_SIZES + 1), pieces - 1):
            if any(after - before < LEAST_SIZES for before, after in itertools.pairwise(cuts)):
                continue
            edges = tuple(float(calls.nbytes[cut - 1]) for cut in cuts)
            errors = _modelled(calls, edges, _fitted(calls, edges)) / calls.times - 1
            score = corrected_akaike(errors, parameters=2 * pieces + 1)  # a call, gammas, edges, the variance
            if math.isfinite(score) and (pieces not in best or score < best[pieces][0]):
                best[pieces] = score, edges
    chosen: Edges = ()
    score = best[1][0] if 1 in best else math.inf
    for pieces in sorted(best):
        if pieces > 1 and best[pieces][0] < score - BETTER_BY:
            score, chosen = best[pieces]
    return chosen
