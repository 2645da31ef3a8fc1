"""What only this suite needs: how soon an arm reaches a given loss beside all-reduce, up to how many nodes it is ahead,
where both end after as many samples, and what a step sends."""

from __future__ import annotations

from . import ends, step_bytes, times

METRICS = [*times.METRICS, *ends.METRICS, *step_bytes.METRICS]
