"""Which chosen values lie at the end of what was tried."""

from __future__ import annotations

from scaleproof.claims.grid_choice import _at_edge


def test_a_value_at_either_end_is_named_and_one_between_is_not() -> None:
    assert _at_edge("learning_rate", 0.1, [0.1, 0.2, 0.4]) == ["learning_rate"]
    assert _at_edge("learning_rate", 0.4, [0.1, 0.2, 0.4]) == ["learning_rate"]
    assert _at_edge("learning_rate", 0.2, [0.1, 0.2, 0.4]) == []


def test_a_key_of_options_is_named_and_one_with_a_single_value_is_not() -> None:
    grid = [{"rate": 0.1, "width": 8}, {"rate": 0.2, "width": 8}, {"rate": 0.4, "width": 8}]
    assert _at_edge("options", grid[2], grid) == ["options.rate"]
    assert _at_edge("options", grid[1], grid) == []


def test_words_have_no_end() -> None:
    assert _at_edge("barrier", "bsp", ["bsp", "ssp"]) == []
