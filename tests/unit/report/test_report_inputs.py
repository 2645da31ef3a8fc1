"""Input checks on the pages and in the output of the command."""

from __future__ import annotations

from scaleproof.core.record_schema import InputCheck, Record
from scaleproof.report.inputs import lines, summary
from tests.unit.records import record


def with_inputs(*checks: InputCheck) -> Record:
    return record().model_copy(update={"inputs": list(checks)})


def check(
    number: int,
    value: float | str | None,
    outcome: str,
    dataset: str = "digits",
    bound: str = "at most 0.05",
    detail: str = "",
) -> InputCheck:
    return InputCheck(
        check=f"D{number}",
        dataset=dataset,
        name=f"thing {number}",
        value=value,
        bound=bound,
        outcome=outcome,
        detail=detail,
    )


def test_launches_of_a_data_set_are_one_row_per_check_with_the_worst_outcome() -> None:
    tables = summary(
        [
            with_inputs(check(10, 0.01, "pass", detail="fine"), check(3, 0.02, "pass")),
            with_inputs(
                check(10, 0.2, "warn", detail="sorted"),
                check(3, 0.02, "pass"),
                check(1, "recipe", "pass", dataset="synthetic web"),
            ),
        ]
    )
    assert [(table.dataset, table.ended, table.loud) for table in tables] == [
        ("digits", "1 warn, 1 pass", ["D10 thing 10 0.0100 to 0.200"]),
        ("synthetic web", "1 pass", []),
    ]
    first, second = tables[0].rows
    assert (first.check, first.value, first.launches) == ("D3", "0.0200", "2 pass")
    assert (second.check, second.value, second.outcome, second.launches, second.detail) == (
        "D10",
        "0.0100 to 0.200",
        "warn",
        "1 warn, 1 pass",
        "sorted",
    )


def test_differing_sentences_of_launches_are_counted() -> None:
    (table,) = summary(with_inputs(check(1, f"seed {seed}", "pass", bound="recorded")) for seed in range(5))
    assert (table.rows[0].value, table.rows[0].bound) == ("seed 0; and 4 more", "recorded")


def test_lines_name_what_is_not_right_and_only_count_the_rest() -> None:
    printed = lines(
        with_inputs(
            check(2, 1790.0, "fail", bound="1797"),
            check(3, 0.0, "pass"),
            check(4, None, "not applicable", bound="none", detail="no arcs"),
        )
    )
    assert printed == ["inputs: digits; 1 fail, 1 pass, 1 not applicable", "  fail D2 thing 2: 1790, bound 1797"]
    assert lines(with_inputs()) == []
