"""The result of a simulation: spans of every rank in simulated time, and the rows of a record made from them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from scaleproof.core.record_schema import SAMPLES
from scaleproof.spec.case import AnyCase, TrainCase

SECOND = 1e9
ALL_EVENTS_OF = 128
"""The record has all events of this many ranks; of further ranks it has the steps and the timed region."""
OF_EVERY_RANK = ("step", "start", "end", "transfer", "all_reduce", "reduce_scatter", "all_gather", "broadcast")


@dataclass(frozen=True, slots=True)
class Span:
    """One event of every rank (or of the first ranks): its start and end on each rank in s of emulated time, and the
    bytes moved."""

    event: str
    step: int
    start: np.ndarray
    end: np.ndarray
    nbytes: int = 0
    warmup: bool = False


@dataclass(slots=True)
class Prediction:
    """The predicted events. `start` and `end`: the timed region on every rank. Times are dilated and bytes shrunk by
    the case's factors; `samples`, `step_s` and `throughput` convert them back."""

    case: AnyCase
    spans: list[Span] = field(default_factory=list)
    start: np.ndarray = field(default_factory=lambda: np.empty(0))
    end: np.ndarray = field(default_factory=lambda: np.empty(0))

    @property
    def step_s(self) -> float:
        """Median over timed steps of the slowest rank's step, in s."""
        steps = [
            float((span.end - span.start).max()) for span in self.spans if span.event == "step" and not span.warmup
        ]
        return float(np.median(steps)) / self.case.dilation

    @property
    def throughput(self) -> float:
        """Samples per s of all ranks over the common wall time of a training case."""
        assert isinstance(self.case, TrainCase)
        return self.case.minibatch * self.case.steps / float(self.end.max() - self.start.min()) * self.case.dilation

    def samples(self) -> pa.Table:
        """Rows of the record, in true time (ns) and true bytes."""
        case, last = self.case, self.case.steps + self.case.warmup - 1 if isinstance(self.case, TrainCase) else 0
        marks = [
            Span("start", case.warmup if isinstance(case, TrainCase) else 0, self.start, self.start),
            Span("end", last, self.end, self.end),
        ]
        spans = [*marks, *self.spans]
        counts = [
            len(span.start) if span.event in OF_EVERY_RANK else min(len(span.start), ALL_EVENTS_OF) for span in spans
        ]
        names = sorted({span.event for span in spans})
        codes = np.array([names.index(span.event) for span in spans], np.int16)

        def each(values: list[float] | np.ndarray, kind: type) -> np.ndarray:
            return np.repeat(np.array(values, kind), counts)

        def moments(times: list[np.ndarray]) -> np.ndarray:
            joined = np.concatenate([time[:count] for time, count in zip(times, counts, strict=True)])
            return np.rint(joined / case.dilation * SECOND).astype(np.int64)

        columns = {
            "rank": np.concatenate([np.arange(count, dtype=np.int16) for count in counts]),
            "event": pa.DictionaryArray.from_arrays(pa.array(each(codes, np.int16)), pa.array(names, pa.string())),
            "step": each([span.step for span in spans], np.int32),
            "warmup": each([span.warmup for span in spans], np.bool_),
            "start_ns": moments([span.start for span in spans]),
            "end_ns": moments([span.end for span in spans]),
            "nbytes": each([round(span.nbytes * case.shrink) for span in spans], np.int64),
            "value": np.full(sum(counts), np.nan),
        }
        table = pa.table(list(columns.values()), names=list(columns)).cast(SAMPLES)
        return table.sort_by([("rank", "ascending"), ("start_ns", "ascending")])
