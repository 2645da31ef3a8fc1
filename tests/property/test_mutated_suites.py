"""1,200 mutated files of all suites: these are suite.yaml and clusters, the others are in test_mutated_claims.py. None
ends in a traceback, and every message is one line with file, line and the nearest valid name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.property.mutated_checks import SHARES, faults
from tools.mutated_files import SEED, commands
from tools.mutated_files.commands import Workplace, workplace
from tools.mutated_files.messages import fault_of
from tools.mutated_files.mutations import CLUSTER, mutated


@pytest.fixture(scope="module")
def place() -> Iterator[Workplace]:
    with workplace() as made:
        yield made


@pytest.mark.parametrize("share", SHARES)
def test_a_mutated_suite_or_cluster_is_taken_or_gives_one_line(share: int, place: Workplace) -> None:
    assert faults(["suite.yaml", CLUSTER], share, place) == []


def test_the_same_number_gives_the_same_file_and_another_seed_another() -> None:
    files = [mutated(number, SEED) for number in range(50)]
    assert [mutated(number, SEED) for number in range(50)] == files
    assert [mutated(number, SEED + 1) for number in range(50)] != files
    assert len({file.source.kind for file in files}) == 5
    assert all(file.content != file.source.text.encode() for file in files if file.mutations == ("cut off",))


def test_a_traceback_is_a_fault(place: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(path: Path) -> None:
        raise KeyError("gone")

    monkeypatch.setattr(commands, "load_suite", broken)
    file = next(file for number in range(50) if (file := mutated(number, SEED)).source.kind == "suite.yaml")
    outcome = place.outcome(file)
    assert outcome.ending == "fault" and "traceback: KeyError: 'gone'" in outcome.fault_line


def test_a_line_that_only_the_mutated_file_has_is_no_fault(place: Workplace) -> None:
    file = next(file for number in range(50) if (file := mutated(number, SEED)).source.kind == "suite.yaml")
    text = file.source.text + "extra: 1\n" * 3
    outcome = place.outcome(replace(file, content=text.encode()))
    assert outcome.ending == "message" and f":{len(text.splitlines()) - 1}: extra: repeated" in str(outcome.message)


@pytest.mark.parametrize(
    ("message", "fault"),
    [
        ("a.yaml:2: key: unknown metric 'x'; did you mean 'y'?", None),
        ("a.yaml:2: key: unknown metric 'x'; known: y, z", None),
        ("a.yaml:2: key: missing", None),
        ("a.yaml:2: key: unknown metric 'x'", "an unknown name without the nearest valid one"),
        ("a.yaml: key: missing", "does not begin with file and line"),
        ("b.yaml:2: key: missing", "there is no file 'b.yaml'"),
        ("a.yaml:9: key: missing", "the file has no line 9"),
        ("a.yaml:2: key: missing\nor not", "not one line"),
        ("a.yaml:2: key: Input should be a valid list", "words of a library"),
    ],
)
def test_a_message_says_where_what_and_the_nearest_name(message: str, fault: str | None, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("a: 1\nb: 2\n")
    assert fault_of(message, tmp_path) == fault
