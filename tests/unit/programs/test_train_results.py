"""What is said of replicas that were compared."""

from __future__ import annotations

import pytest

from scaleproof.programs.train_results import compared


@pytest.mark.parametrize(
    ("holders", "said"),
    [
        ([4], "the same bits on 4 ranks"),
        ([4, 4], "the same bits on 4 ranks"),
        ([4, 2, 2], "the same bits in each of 3 groups of replicas, of 2 to 4 ranks"),
        ([2, 2], "the same bits in each of 2 groups of replicas, of 2 ranks"),
    ],
)
def test_no_more_is_said_than_was_compared(holders: list[int], said: str) -> None:
    assert compared(holders, world_size=4) == said
