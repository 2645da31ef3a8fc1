"""The table of strategies in the docs is that of their descriptors."""

from __future__ import annotations

import pytest

from scaleproof.spec import registry
from tools import strategy_table


def test_the_table_in_the_docs_is_that_of_the_descriptors() -> None:
    stored = strategy_table.PAGE.read_text()
    assert stored == strategy_table.page(stored), "type `make docs`"


def test_every_strategy_of_the_harness_has_a_row_with_its_options() -> None:
    rows = {line.split("`")[1]: line for line in strategy_table.table().splitlines()[2:]}
    assert set(rows) == set(registry.names("strategy"))
    assert "`slow_momentum`" in rows["slow_momentum"].rpartition("|")[0].rpartition("|")[2]
    assert "at their own pace | apart | the servers'" in rows["elastic_averaging"]


def test_a_page_without_the_markers_is_told_which_lines_it_lacks() -> None:
    with pytest.raises(ValueError, match="end of strategies"):
        strategy_table.page("# Strategies\n")
