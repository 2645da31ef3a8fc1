"""Mutated files of claims, published rows and figures, as in test_mutated_suites.py; another worker may have these."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from scaleproof.claims import decidable
from tests.property.mutated_checks import SHARES, faults
from tools.mutated_files.commands import Workplace, workplace
from tools.mutated_files.mutations import ROOT, MutatedFile, Source


@pytest.fixture(scope="module")
def place() -> Iterator[Workplace]:
    with workplace() as made:
        yield made


@pytest.mark.parametrize("share", SHARES)
def test_mutated_claims_rows_and_figures_are_taken_or_give_one_line(share: int, place: Workplace) -> None:
    assert faults(["claims.yaml", "published.yaml", "figures.yaml"], share, place) == []


@pytest.mark.parametrize(("name", "number"), [("claims.yaml", 0), ("suite.yaml", 1)])
def test_a_file_that_is_taken_is_asked_what_a_machine_with_known_noise_decides(
    name: str, number: int, place: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Suite collectives has claims whose made-up launches are judged by a dry run where noise is known."""

    def impossible(*of_claim: object) -> None:
        raise KeyError("beyond the noise")

    path = ROOT / "suites" / "collectives" / name
    file = MutatedFile(number, Source(path, path.read_text()), path.read_bytes(), ("none",))
    assert place.outcome(file).ending == "taken"
    monkeypatch.setattr(decidable, "_beyond_noise", impossible)
    assert "KeyError: 'beyond the noise'" in str(place.outcome(file).fault)
