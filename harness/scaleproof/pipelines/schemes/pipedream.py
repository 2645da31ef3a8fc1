"""PipeDream (Narayanan et al. 2019) and PipeDream-2BW (2021): 1F1B whose iterations follow one another without a gap.
PipeDream updates after every micro-batch, 2BW after as many as an iteration has; gradients are of older weights."""

from __future__ import annotations

from dataclasses import replace

from scaleproof.pipelines.schedule import Schedule
from scaleproof.pipelines.scheme import Scheme
from scaleproof.pipelines.schemes.dapple import dapple


def pipedream(stages: int, micro_batches: int) -> Schedule:
    """Stage s keeps D - s versions of its weights, for the micro-batches that are between it and the last stage."""
    return replace(dapple(stages, micro_batches), scheme="pipedream", flush=False)


def pipedream_2bw(stages: int, micro_batches: int) -> Schedule:
    """Every stage keeps two versions of its weights."""
    return replace(dapple(stages, micro_batches), scheme="pipedream_2bw", flush=False)


SCHEMES = (
    Scheme("pipedream", "1F1B without a flush; an update after every micro-batch", pipedream, min),
    Scheme("pipedream_2bw", "1F1B without a flush; two versions of the weights", pipedream_2bw, min),
)
