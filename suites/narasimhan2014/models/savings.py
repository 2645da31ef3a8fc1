"""How much work and time the heuristics save: kernel elements, which are exact, and seconds."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pandas as pd

from scaleproof.claims.made_up import ImpossibleValue, MadeUp, Wanted, possible
from scaleproof.claims.metrics import Metric
from scaleproof.core.record_schema import Record
from scaleproof.spec.case import AnyCase, OwnCase

from .variants import BEYOND, LIBRARY, ORIGINAL, UNSHRUNK, has, made, names_of, notes, seconds

FIRST = ("2", "5pc", "10pc", "500", "1000", "50pc")
WAYS = ("single", "multi")
ELEMENTS = 1e6
"""Of a made-up launch without shrinking."""
JUDGED = "2_multi"
"""The heuristic of the paper's rows: the earliest threshold, and dropping that goes on."""
SINGLE = "2_single"


def elements_ratio(name: str) -> Callable[[Record, pd.DataFrame], float | None]:
    """Of a heuristic."""

    def metric(record: Record, samples: pd.DataFrame) -> float | None:
        elements = notes(record, samples, "elements")
        return elements[ORIGINAL] / elements[name] if {ORIGINAL, name} <= elements.keys() else None

    return metric


def time_ratio(slower: str, faster: str) -> Callable[[Record, pd.DataFrame], float | None]:
    """Of two variants."""

    def metric(record: Record, samples: pd.DataFrame) -> float | None:
        times = seconds(record, samples)
        return times[slower] / times[faster] if {slower, faster} <= times.keys() else None

    return metric


def time_improvement(record: Record, samples: pd.DataFrame) -> float | None:
    """By how many per cent a machine is trained faster with shrinking than without (suite narasimhan2014).

    time_improvement = 100 (time without shrinking / time with it - 1)

    Shrinking is that of heuristic `2_multi`: samples are looked through first after 2 iterations, and are dropped again
    after a reconstruction. Of one launch, which solves both. The paper does not say whether its 30 to 60 % are this or
    [training_time_saved](training_time_saved.md).
    """
    ratio = time_ratio(ORIGINAL, JUDGED)(record, samples)
    return None if ratio is None else 100 * (ratio - 1)


def training_time_saved(record: Record, samples: pd.DataFrame) -> float | None:
    """How many per cent of the time shrinking saves (suite narasimhan2014).

    training_time_saved = 100 (1 - time with shrinking / time without it)

    See [time_improvement](time_improvement.md).
    """
    ratio = time_ratio(ORIGINAL, JUDGED)(record, samples)
    return None if ratio is None else 100 * (1 - 1 / ratio)


def threshold(name: str, samples: int) -> float:
    """Iterations before the first look of a heuristic."""
    first = name.partition("_")[0]
    return samples * float(first.removesuffix("pc")) / 100 if first.endswith("pc") else float(first)


def in_order(case: AnyCase, way: str) -> list[str]:
    """Heuristics of a way with different thresholds, the most aggressive one first."""
    if not isinstance(case, OwnCase):
        return []
    count = int(case.options["samples"])
    by_threshold = {threshold(f"{first}_{way}", count): f"{first}_{way}" for first in FIRST
                    if f"{first}_{way}" in names_of(case)}  # fmt: skip
    return [by_threshold[each] for each in sorted(by_threshold)]


def aggressive_order(way: str) -> Callable[[Record, pd.DataFrame], float | None]:
    """Of heuristics that reconstruct in this way."""

    def metric(record: Record, samples: pd.DataFrame) -> float | None:
        elements = notes(record, samples, "elements")
        ordered = [elements[name] for name in in_order(record.case, way) if name in elements]
        if len(ordered) < 2:
            return None
        return sum(first <= later for first, later in pairwise(ordered)) / (len(ordered) - 1)

    return metric


def made_up_elements(name: str) -> Callable[[Wanted], MadeUp]:
    """Launches in which a heuristic computes so many times fewer elements."""

    def make(wanted: Wanted) -> MadeUp:
        has(wanted.case, ORIGINAL, name)
        return made(wanted.case, {"elements": {ORIGINAL: ELEMENTS, name: ELEMENTS / possible(wanted.known, 1e-9)}})

    return make


def made_up_times(slower: str, faster: str, ratio: Callable[[float], float]) -> Callable[[Wanted], MadeUp]:
    """Launches in which one variant takes so many times as long as another."""

    def make(wanted: Wanted) -> MadeUp:
        has(wanted.case, slower, faster)
        return made(wanted.case, {}, {"solve": {slower: possible(ratio(wanted.known), 1e-6), faster: 1.0}})

    return make


def made_up_order(way: str) -> Callable[[Wanted], MadeUp]:
    """Launches in which so many neighbours are in order, the first ones."""

    def make(wanted: Wanted) -> MadeUp:
        ordered = in_order(wanted.case, way)
        if len(ordered) < 2:
            raise ImpossibleValue("the case has no two thresholds")
        held = round(possible(wanted.known, 0.0, 1.0) * (len(ordered) - 1))
        steps = [2.0 if number < held else 0.5 for number in range(len(ordered) - 1)]
        values = {ordered[0]: ELEMENTS}
        for (before, name), step in zip(pairwise(ordered), steps, strict=True):
            values[name] = values[before] * step
        return made(wanted.case, {"elements": values})

    return make


def _saved_ratio(percent: float) -> float:
    return 1 / (1 - possible(percent, -1e6, 99.9) / 100)


def _time_ratio(name: str, slower: str, faster: str, doc: str) -> Metric:
    return Metric(
        name,
        "x",
        "higher",
        launch=time_ratio(slower, faster),
        clocked=True,
        made_up=made_up_times(slower, faster, lambda ratio: ratio),
        doc=doc,
    )


METRICS = [
    *(
        Metric(
            f"elements_ratio_{first}_{way}",
            "x",
            "higher",
            launch=elements_ratio(f"{first}_{way}"),
            own_count=True,
            made_up=made_up_elements(f"{first}_{way}"),
            doc=f"""
            How many times fewer values of the kernel heuristic `{first}_{way}` computes (suite narasimhan2014).

            elements_ratio = kernel elements without shrinking / kernel elements of the heuristic

            Of all ranks, with those of reconstructions: two for each active sample of an iteration, and one for each
            pair of a sample that comes back and one with alpha > 0. The name is the iteration of the first look (`pc`:
            per cent of the samples), and whether samples are dropped after the first reconstruction (multi) or not.
            """,
        )
        for first in FIRST
        for way in WAYS
    ),
    Metric(
        "elements_ratio_beyond_single",
        "x",
        None,
        launch=elements_ratio(BEYOND),
        own_count=True,
        made_up=made_up_elements(BEYOND),
        doc="""
        How many times fewer values of the kernel are computed with a first look that is never reached: a control
        (suite narasimhan2014).

        elements_ratio = kernel elements without shrinking / kernel elements with a threshold beyond the last iteration

        See [elements_ratio_2_single](elements_ratio_2_single.md).
        """,
    ),
    *(
        Metric(
            f"aggressive_order_{way}",
            "fraction",
            "higher",
            launch=aggressive_order(way),
            own_count=True,
            made_up=made_up_order(way),
            doc=f"""
            In how many steps from a first threshold to the next later one no work is saved, of heuristics with
            reconstruction `{way}` (suite narasimhan2014).

            aggressive_order = steps after which a heuristic computes no fewer kernel elements / steps

            1: the earlier the first look, the less work. Thresholds that are equal for this number of samples count
            once.
            """,
        )
        for way in WAYS
    ),
    _time_ratio(
        "shrinking_time_ratio",
        ORIGINAL,
        JUDGED,
        """
        How many times faster a machine is trained with shrinking (suite narasimhan2014).

        shrinking_time_ratio = time without shrinking / time of heuristic `2_multi`, in one launch
        """,
    ),
    _time_ratio(
        "shrinking_time_ratio_single",
        ORIGINAL,
        SINGLE,
        """
        The same with heuristic `2_single` (suite narasimhan2014).

        shrinking_time_ratio_single = time without shrinking / time of heuristic `2_single`, in one launch
        """,
    ),
    _time_ratio(
        "beyond_time_ratio",
        ORIGINAL,
        BEYOND,
        """
        The same for a first threshold that is never reached: a control (suite narasimhan2014).

        beyond_time_ratio = time without shrinking / time with a threshold beyond the last iteration, in one launch

        1 but for noise within the launch.
        """,
    ),
    _time_ratio(
        "library_time_ratio",
        UNSHRUNK,
        LIBRARY,
        """
        How many times faster scikit-learn's SVC (LIBSVM) is with its own shrinking (suite narasimhan2014).

        library_time_ratio = time of SVC(shrinking=False) / time of SVC(shrinking=True), in one launch
        """,
    ),
    _time_ratio(
        "library_over_ours",
        LIBRARY,
        JUDGED,
        """
        How many times as long as our solver scikit-learn's SVC takes (suite narasimhan2014).

        library_over_ours = time of SVC(shrinking=True) / time of heuristic `2_multi` on one rank, in one launch

        The library has a cache of kernel rows (option `cache_mb`), our solver computes each value anew, as the paper's.
        """,
    ),
    Metric(
        "time_improvement",
        "%",
        "higher",
        launch=time_improvement,
        clocked=True,
        noise="gain",
        made_up=made_up_times(ORIGINAL, JUDGED, lambda percent: 1 + percent / 100),
        range=(-100.0, float("inf")),
    ),
    Metric(
        "training_time_saved",
        "%",
        "higher",
        launch=training_time_saved,
        clocked=True,
        noise="gain",
        made_up=made_up_times(ORIGINAL, JUDGED, _saved_ratio),
        range=(-float("inf"), 100.0),
    ),
]
