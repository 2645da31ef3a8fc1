"""Holm's correction and the blocks that it needs."""

import pytest

from scaleproof.stats.many_tests import blocks_needed, holm


def test_holms_correction_is_that_of_his_procedure() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0] and holm([]) == []


@pytest.mark.parametrize(("steps", "blocks"), [(1, 6), (2, 7), (3, 7), (4, 8), (6, 8), (7, 9)])
def test_more_steps_need_more_blocks(steps: int, blocks: int) -> None:
    assert blocks_needed(steps) == blocks
    assert steps * 2 / 2**blocks <= 0.05 < steps * 2 / 2 ** (blocks - 1)
