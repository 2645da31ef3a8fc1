"""Ranks that tests fork."""

from __future__ import annotations

import pytest

from scaleproof.core.context import RankContext
from scaleproof.rank.unsupervised_ranks import run_ranks
from tests.short_form import ring_case

ELEMENTS = 1 << 20
"""So many that torch divides the work over its threads."""


def test_ranks_compute_also_after_their_parent_has_used_threads_of_its_own() -> None:
    torch = pytest.importorskip("torch")

    def body(context: RankContext) -> None:
        assert float(torch.ones(ELEMENTS).abs().max()) == 1.0

    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        body(None)  # type: ignore[arg-type]
        assert run_ranks(ring_case(), body, timeout_s=20) == ["", ""]
    finally:
        torch.set_num_threads(threads)
