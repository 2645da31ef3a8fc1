"""Forms in which a side of a comparison can be named, and the messages for mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest

from scaleproof.compare.side_selection import KEYS, parse, select
from scaleproof.spec.errors import SpecError
from tests.unit.compare.compare_records import FAST, code, launches
from tests.unit.records import case

TCP = case(sizes=[1024], arm="tcp", transport="tcp")
GLOO = case(sizes=[1024], arm="gloo", transport="gloo", collective="native", handicap=0.5)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("side") / "results"
    launches(folder, FAST[:3], "a1", case=TCP, code=code("abc123"), machine="m1")
    launches(folder, FAST[:2], "b2", at=2, case=GLOO, code=code("abd456"), machine="m2", size="smoke")
    return folder


def chosen(text: str, results: Path) -> list[str]:
    return sorted(record.launch for record in select(text, results).records)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ["a100", "a101", "a102", "b200", "b201"]),
        ("a101", ["a101"]),
        ("b200", ["b200"]),
        (TCP.case_id, ["a100", "a101", "a102"]),
        (GLOO.case_id[:9], ["b200", "b201"]),
        ("@arm:tcp", ["a100", "a101", "a102"]),
        ("@arm:tcp,arm:gloo", ["a100", "a101", "a102", "b200", "b201"]),
        ("@commit:abc", ["a100", "a101", "a102"]),
        ("@machine:m2,size:smoke", ["b200", "b201"]),
        ("@handicap:0.50", ["b200", "b201"]),
        ("@experiment:e,transport:tcp,launch:a102", ["a102"]),
        ("@since:2026-01-01T01", ["b200", "b201"]),
        ("@until:2026-01-01T00:01", ["a100"]),
        (f"{GLOO.case_id}@launch:b201", ["b201"]),
    ],
)
def test_a_side_is_a_folder_a_case_a_launch_or_conditions(text: str, expected: list[str], results: Path) -> None:
    assert chosen(text, results) == expected


def test_a_folder_is_taken_with_and_without_conditions(results: Path) -> None:
    assert len(chosen(str(results), Path("elsewhere"))) == 5
    assert chosen(f"{results}@arm:gloo", Path("elsewhere")) == ["b200", "b201"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("@amr:tcp", "unknown key 'amr'; did you mean 'arm'?"),
        ("@arm:tpc", "has arm 'tpc'; did you mean 'tcp'?"),
        ("@arm", "'arm' is no condition; write KEY:VALUE"),
        ("@arm:", "is no condition"),
        ("@arm:tcp,", "'' is no condition"),
        ("@commit:ab", "commit 'ab' is the beginning of 2"),
        ("@arm:tcp,machine:m2", "meets all of arm:tcp, machine:m2"),
        ("@size:smok", "has size 'smok'; did you mean 'smoke'?"),
        ("@since:yesterday", "'yesterday' is no moment"),
        ("@since:2027", "started since 2027; the first one did at 2026-01-01T00:00"),
        ("a1", "is the beginning of 0 cases and 3 launches"),
        ("a109", "no folder, case or launch 'a109'"),
        ("resluts", "no folder 'resluts'"),
    ],
)
def test_a_mistake_is_one_line_with_the_nearest_name(text: str, message: str, results: Path) -> None:
    with pytest.raises(SpecError) as raised:
        select(text, results)
    assert message in str(raised.value) and "\n" not in str(raised.value)


def test_a_folder_misspelt_names_the_one_beside_it(results: Path) -> None:
    with pytest.raises(SpecError, match="did you mean '.*/results'"):
        select(str(results.with_name("resluts")), Path("results"))
    with pytest.raises(SpecError, match="has no folder 'runs'"):
        select(str(results.parent), Path("results"))


def test_launches_of_the_calibration_are_chosen_by_name_only(tmp_path: Path) -> None:
    launches(tmp_path, FAST[:1], "a")
    launches(tmp_path, FAST[:1], "b", case=case(suite="calibration"))
    assert chosen("", tmp_path) == ["a00"] and chosen("@suite:calibration", tmp_path) == ["b00"] == chosen(
        "b00", tmp_path
    )


def test_a_folder_whose_name_has_an_at_sign_is_a_folder(tmp_path: Path) -> None:
    launches(tmp_path / "run@home", FAST[:1], "a")
    assert parse(str(tmp_path / "run@home")) == (str(tmp_path / "run@home"), ())
    assert len(chosen(str(tmp_path / "run@home"), tmp_path)) == 1


def test_the_docs_name_every_key_that_is_no_field_of_a_case() -> None:
    text = (Path(__file__).parents[3] / "docs" / "compare.md").read_text()
    assert [key for key in KEYS[:9] if f"`{key}" not in text] == []
