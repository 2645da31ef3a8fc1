"""Mutated files of claims, published rows and figures, as in test_mutated_suites.py; another worker may have these."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.property.mutated_checks import SHARES, faults
from tools.mutated_files.commands import Workplace, workplace


@pytest.fixture(scope="module")
def place() -> Iterator[Workplace]:
    with workplace() as made:
        yield made


@pytest.mark.parametrize("share", SHARES)
def test_mutated_claims_rows_and_figures_are_taken_or_give_one_line(share: int, place: Workplace) -> None:
    assert faults(["claims.yaml", "published.yaml", "figures.yaml"], share, place) == []
