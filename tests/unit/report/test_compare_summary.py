"""Output of a comparison for continuous integration: the outcome, the Markdown of a job's summary, and the smallest
difference that its launches could show."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scaleproof.cli import main
from scaleproof.report.compare_summary import summary
from tests.unit.compare.compare_records import (
    FAST,
    NEW,
    OLD,
    SLOW,
    calibrate,
    code,
    compared,
    launches,
    two_commits,
    warning_messages,
)
from tests.unit.records import case


def run(results: Path, *arguments: str) -> int:
    return main(["compare", OLD, NEW, "--results", str(results), "--fail-on", "regression", *arguments])


def test_a_regression_stands_in_the_summary_with_its_numbers_and_in_the_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results, file = two_commits(tmp_path / "results", SLOW), tmp_path / "summary.md"
    file.write_text("of an earlier step\n")
    assert run(results, "--json", "--summary", str(file)) == 1
    text = file.read_text()
    assert text.startswith("of an earlier step\n### Scaleproof: regression\n")
    (row,) = [line for line in text.splitlines() if "collective_latency" in line]
    assert "+50.0 %" in row and "**regression**" in row and row.count(" | ") == 8
    assert "rank-sum" not in text and "`not_interleaved`" in text
    comparison = json.loads(capsys.readouterr().out)
    assert (comparison["schema_version"], comparison["outcome"], comparison["regressions"]) == (3, "regression", 3)


def test_equal_launches_are_no_regression_and_their_summary_has_no_table(tmp_path: Path) -> None:
    results = two_commits(tmp_path / "results", FAST)
    assert run(results) == 0
    text = summary(compared(results))
    assert text.startswith("### Scaleproof: no regression\n") and "3 rows: 3 no difference." in text and "|" not in text


def test_a_runner_of_another_kind_is_reported_and_is_no_failure(tmp_path: Path) -> None:
    results = two_commits(tmp_path / "results", SLOW, machine="m2")
    calibrate(results, "m2")
    assert run(results) == 0
    text = summary(compared(results))
    assert (
        text.startswith("### Scaleproof: other machine\n\nA and B ran on different machines")
        and "**regression**" not in text
    )


def test_an_undecided_comparison_stands_in_the_summary_too(tmp_path: Path) -> None:
    results, file = two_commits(tmp_path / "results", SLOW), tmp_path / "summary.md"
    (results / "machines" / "m" / "profile.json").unlink()
    assert run(results, "--summary", str(file)) == 2
    assert file.read_text().startswith(
        "### Scaleproof: undecided\n\nalgbw, busbw, collective\\_latency got significantly worse, but no "
        "noise floor is known"
    )


def test_a_floor_of_another_metric_decides_nothing(tmp_path: Path) -> None:
    results = two_commits(tmp_path / "results", SLOW)
    path = results / "machines" / "m" / "profile.json"
    profile = json.loads(path.read_text())
    profile["floors"] = [{**floor, "program": "train"} for floor in profile["floors"]]
    path.write_text(json.dumps(profile))
    assert run(results) == 2


def test_a_case_without_a_good_launch_is_named(tmp_path: Path) -> None:
    results = two_commits(tmp_path / "results", FAST)
    other = case(sizes=[2048], iterations=4, warmup=0, arm="gone")
    launches(results, FAST, "c", case=other, code=code("0ld"))
    launches(results, FAST[:2], "d", at=1, case=other, code=code("new", digest="e"), status="failed")
    assert "- no launch of B ended well: s e: gone, collective" in summary(compared(results))


def test_names_from_suites_are_not_read_as_markdown_or_html(tmp_path: Path) -> None:
    hostile = case(sizes=[1024], iterations=4, warmup=0, arm="<img src=x> | **[b](c)**\n## d")
    launches(tmp_path, FAST, "a", case=hostile, code=code("0ld"))
    launches(tmp_path, SLOW, "b", at=1, case=hostile, code=code("new"))
    calibrate(tmp_path)
    (row,) = [
        line
        for line in summary(compared(tmp_path)).splitlines()
        if "collective_latency" in line and line.startswith("|")
    ]
    assert "&lt;img src=x&gt; \\| \\*\\*\\[b\\](c)\\*\\* ## d" in row


def test_more_rows_than_a_lone_change_can_stand_out_from_are_warned_of(tmp_path: Path) -> None:
    """8 unpaired launches a side give p = 2 / 12870 at best, enough for 3 rows; 6 blocks give 2 / 64, too much for more
    than one row."""
    assert "too_many_rows" not in warning_messages(compared(two_commits(tmp_path / "eight", FAST)))
    few = tmp_path / "five"
    for number in range(3):
        chosen = case(sizes=[1024 << number], iterations=4, warmup=0)
        launches(few, FAST[:6], f"a{number}", case=chosen, code=code("0ld"))
        launches(few, SLOW[:6] if number == 0 else FAST[:6], f"b{number}", case=chosen, code=code("new", digest="e"))
    comparison = compared(few)
    assert (
        comparison.pairs[0].paired
        and comparison.tests == 9
        and "9 of 9 rows" in warning_messages(comparison)["too_many_rows"]
    )
    assert "too_many_rows" not in warning_messages(
        compared(few, metrics=("collective_latency",), a=f"{comparison.pairs[0].case_a}@commit:0ld")
    )
