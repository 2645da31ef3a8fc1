"""Whether shrinking changes what is found: objectives, violations and predictions."""

from __future__ import annotations

import math

import pandas as pd

from scaleproof.claims.made_up import ImpossibleValue, MadeUp, Wanted, possible
from scaleproof.claims.metrics import Metric
from scaleproof.core.record_schema import Record

from .variants import BACK, BEYOND, LIBRARY, NEVER, ORIGINAL, UNSHRUNK, has, made, notes, shrinking


def objective_apart(record: Record, samples: pd.DataFrame) -> float | None:
    """Largest relative distance of the objective with shrinking from that without (suite narasimhan2014).

    objective_apart = largest over heuristics of | objective / objective without shrinking - 1 |

    The objective is that of the dual, over all samples: gamma is computed anew from all samples with alpha > 0, after
    the timed region, also of samples that were dropped and never came back.
    """
    found = notes(record, samples, "objective")
    names = [name for name in shrinking(record.case) if name in found]
    if ORIGINAL not in found or not names:
        return None
    return max(abs(found[name] / found[ORIGINAL] - 1) for name in names)


def objective_lost(record: Record, samples: pd.DataFrame) -> float | None:
    """How much further the objective is from that without shrinking where dropped samples never come back (suite
    narasimhan2014).

    objective_lost = | objective of 2_never / original - 1 | - | objective of 2_multi / original - 1 |

    See [objective_apart](objective_apart.md).
    """
    found = notes(record, samples, "objective")
    if not {ORIGINAL, BACK, NEVER} <= found.keys():
        return None
    never, back = (abs(found[name] / found[ORIGINAL] - 1) for name in (NEVER, BACK))
    return never - back


def library_objective_apart(record: Record, samples: pd.DataFrame) -> float | None:
    """Relative distance of our objective without shrinking from that of scikit-learn's SVC (suite narasimhan2014).

    library_objective_apart = | our objective / objective of the library's alpha - 1 |

    See [objective_apart](objective_apart.md).
    """
    found = notes(record, samples, "objective")
    return abs(found[ORIGINAL] / found[LIBRARY] - 1) if {ORIGINAL, LIBRARY} <= found.keys() else None


def prediction_agreement(record: Record, samples: pd.DataFrame) -> float | None:
    """Share of samples that are predicted with shrinking as without it, the least over heuristics (suite
    narasimhan2014).

    prediction_agreement = least over heuristics of (equal predictions / training and test samples)
    """
    found = notes(record, samples, "agree")
    return min((found[name] for name in shrinking(record.case) if name in found), default=None)


def library_agreement(record: Record, samples: pd.DataFrame) -> float | None:
    """Share of samples that scikit-learn's SVC predicts as our solver without shrinking does (suite narasimhan2014).

    library_agreement = equal predictions / training and test samples
    """
    return notes(record, samples, "agree").get(LIBRARY)


def violation(record: Record, samples: pd.DataFrame) -> float | None:
    """By how much beta_low is above beta_up at the end, over all samples, the largest over heuristics (suite
    narasimhan2014), in units of eps.

    violation = largest over heuristics of (beta_low - beta_up) / eps

    The solver stops at 2 on active samples; here all samples count, with gamma computed anew.
    """
    found = notes(record, samples, "violation")
    return max((found[name] for name in (*shrinking(record.case), ORIGINAL) if name in found), default=None)


def bound_share(record: Record, samples: pd.DataFrame) -> float | None:
    """Share of support vectors whose alpha is at its bound C (suite narasimhan2014).

    bound_share = samples with alpha = C / samples with alpha > 0, without shrinking
    """
    return notes(record, samples, "at_bound").get(ORIGINAL)


def beyond_alpha_apart(record: Record, samples: pd.DataFrame) -> float | None:
    """Largest distance of alpha of a sample, with a first look that is never reached, from that without shrinking
    (suite narasimhan2014).

    beyond_alpha_apart = largest over samples of | alpha of `beyond_single` - alpha of `original` |
    """
    return notes(record, samples, "from_original").get(BEYOND)


def _made_up_beyond(wanted: Wanted) -> MadeUp:
    has(wanted.case, ORIGINAL, BEYOND)
    return made(wanted.case, {"from_original": {BEYOND: wanted.known}})


def _made_up_objective(wanted: Wanted) -> MadeUp:
    has(wanted.case, ORIGINAL)
    if not shrinking(wanted.case):
        raise ImpossibleValue("the case drops nothing")
    factor = 1 + possible(wanted.known)
    return made(wanted.case, {"objective": {ORIGINAL: -100.0} | dict.fromkeys(shrinking(wanted.case), -100.0 * factor)})


def _made_up_lost(wanted: Wanted) -> MadeUp:
    has(wanted.case, ORIGINAL, BACK, NEVER)
    error = {NEVER: max(wanted.known, 0.0), BACK: max(-wanted.known, 0.0), ORIGINAL: 0.0}
    return made(wanted.case, {"objective": {name: -100.0 * (1 + each) for name, each in error.items()}})


def _made_up_library_objective(wanted: Wanted) -> MadeUp:
    has(wanted.case, ORIGINAL, LIBRARY, UNSHRUNK)
    return made(wanted.case, {"objective": {LIBRARY: -100.0, ORIGINAL: -100.0 * (1 + possible(wanted.known))}})


def _made_up_agreement(wanted: Wanted) -> MadeUp:
    if not shrinking(wanted.case):
        raise ImpossibleValue("the case drops nothing")
    return made(wanted.case, {"agree": dict.fromkeys(shrinking(wanted.case), possible(wanted.known, 0.0, 1.0))})


def _made_up_library_agreement(wanted: Wanted) -> MadeUp:
    has(wanted.case, LIBRARY)
    return made(wanted.case, {"agree": {LIBRARY: possible(wanted.known, 0.0, 1.0)}})


def _made_up_violation(wanted: Wanted) -> MadeUp:
    has(wanted.case, ORIGINAL)
    return made(wanted.case, {"violation": {ORIGINAL: wanted.known}})


def _made_up_bound(wanted: Wanted) -> MadeUp:
    has(wanted.case, ORIGINAL)
    return made(wanted.case, {"at_bound": {ORIGINAL: possible(wanted.known, 0.0, 1.0)}})


METRICS = [
    Metric("objective_apart", "1", "lower", launch=objective_apart, made_up=_made_up_objective),
    Metric("objective_lost", "1", None, launch=objective_lost, made_up=_made_up_lost, range=(-math.inf, math.inf)),
    Metric("library_objective_apart", "1", "lower", launch=library_objective_apart, made_up=_made_up_library_objective),
    Metric("prediction_agreement", "fraction", "higher", launch=prediction_agreement, made_up=_made_up_agreement),
    Metric("library_agreement", "fraction", "higher", launch=library_agreement, made_up=_made_up_library_agreement),
    Metric("violation", "1", "lower", launch=violation, made_up=_made_up_violation, range=(-math.inf, math.inf)),
    Metric("beyond_alpha_apart", "1", "lower", launch=beyond_alpha_apart, own_count=True, made_up=_made_up_beyond),
    Metric("bound_share", "fraction", None, launch=bound_share, made_up=_made_up_bound),
]
