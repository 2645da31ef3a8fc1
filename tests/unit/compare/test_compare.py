"""Findings, warnings and exit codes of comparisons, from records of made-up speed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from scaleproof.claims.metrics import METRICS
from scaleproof.cli import main
from scaleproof.compare.comparison_schema import Comparison
from scaleproof.compare.launch_values import PER_SIZE
from scaleproof.core.record_schema import Warning
from scaleproof.record.machine import Bound, read_profile, write_profile
from tests.short_form import case_from
from tests.unit.compare.compare_records import (
    FAST,
    HERE,
    NEW,
    OLD,
    OTHER_RANK,
    RANK,
    SLOW,
    THERE,
    calibrate,
    code,
    compared,
    launches,
    two_commits,
    warning_messages,
)
from tests.unit.records import case

LATENCY = ("--metric", "collective_latency")


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Two commits of which the second is half as fast, on a calibrated machine."""
    return two_commits(tmp_path / "results", SLOW)


def run(results: Path, *arguments: str) -> int:
    return main(["compare", *arguments, "--results", str(results)])


def test_a_rate_stands_beside_what_the_machine_can_do_or_why_that_is_not_known(results: Path) -> None:
    latency, *rates = compared(results).rows
    assert (latency.shares, latency.no_bound) == ((None, None), "")
    assert {(rate.shares, rate.no_bound) for rate in rates} == {((None, None), "the path of its bytes is not recorded")}


def test_a_share_of_what_the_machine_can_do_is_that_of_each_side(tmp_path: Path) -> None:
    taken: dict[str, Any] = {"transport": {"ranks": [{"path": "socket"}] * 2}}
    two_commits(tmp_path, SLOW, **taken)
    launches(tmp_path, FAST, "c", code=code("0ld"), **taken)
    bound = Bound(name="loopback", value=4e9, low=3e9, high=5e9, n=6, unit="B/s", taken="made up")
    profile = read_profile(tmp_path, "m")
    assert profile is not None
    write_profile(tmp_path, profile.model_copy(update={"bounds": (bound,)}))
    busbw = next(row for row in compared(tmp_path).rows if row.metric == "busbw")
    assert busbw.a is not None and busbw.b is not None
    assert busbw.shares == (pytest.approx(busbw.a / 4), pytest.approx(busbw.b / 4))


def test_a_slower_commit_is_worse_in_every_metric_by_its_direction(results: Path) -> None:
    comparison = compared(results)
    assert {row.metric: (row.finding, row.change) for row in comparison.rows} == {
        "collective_latency": ("higher", "worse"),
        "algbw": ("lower", "worse"),
        "busbw": ("lower", "worse"),
    }
    latency = comparison.rows[0]
    assert (
        latency.ratio == pytest.approx(1.5)
        and latency.low is not None
        and 1.4 < latency.low < 1.5 < (latency.high or 0) < 1.6
    )
    assert (latency.n, latency.nbytes, comparison.regressions) == ((8, 8), 1024, 3)
    assert latency.floor == pytest.approx(1.05 ** (6 / 8) ** 0.5 - 1), "the floor of 8 launches"
    assert (
        "one after the other, not interleaved" in warning_messages(comparison)["not_interleaved"]
        and "rank-sum" in latency.test
    )


def test_fail_on_regression_is_1_when_b_is_worse_and_0_when_it_is_better_or_the_same(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(results, OLD, NEW) == 0
    assert run(results, OLD, NEW, "--fail-on", "regression") == 1
    assert run(results, NEW, OLD, "--fail-on", "regression") == 0
    assert run(results, OLD, OLD, "--fail-on", "regression") == 0
    assert "regression" in capsys.readouterr().out


def test_a_change_within_the_noise_floor_is_no_difference(tmp_path: Path) -> None:
    comparison = compared(two_commits(tmp_path, tuple(1.01 * value for value in FAST)))
    assert {row.change for row in comparison.rows} == {"no difference"} and comparison.regressions == 0


def test_without_a_noise_floor_nothing_is_worse_or_better_and_fail_on_is_an_error(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (results / "machines" / "m" / "profile.json").unlink()
    comparison = compared(results)
    assert {(row.finding in ("higher", "lower"), row.change) for row in comparison.rows} == {(True, "inconclusive")}
    assert {row.change for row in compared(results, NEW, OLD).rows} == {"inconclusive"}, "nor is one better"
    assert comparison.regressions == 0 and warning_messages(comparison)["no_noise_floor"].endswith(
        "`scaleproof calibrate`"
    )
    assert run(results, OLD, NEW) == 0
    capsys.readouterr()
    assert run(results, OLD, NEW, "--fail-on", "regression") == 2
    error = capsys.readouterr().err.strip().splitlines()
    assert len(error) == 1 and "scaleproof calibrate" in error[0]


def test_every_metric_of_a_message_size_is_compared() -> None:
    names = {name for columns in PER_SIZE.values() for name in columns}
    assert [metric.name for metric in METRICS.values() if metric.size is not None and metric.name not in names] == []


def test_training_that_ends_with_a_higher_loss_is_a_regression_on_any_machine(tmp_path: Path) -> None:
    fields = {
        "program": "train",
        "suite": "s",
        "experiment": "e",
        "arm": "a",
        "ranks": 2,
        "transport": "gloo",
        "strategy": "sync",
        "workload": "dnn_digits",
    }
    training = case_from({**fields, "workload.data": "digits", "minibatch": 8, "steps": 4, "warmup": 0})
    launches(tmp_path, FAST, "a", case=training, code=code("0ld"))
    launches(tmp_path, SLOW, "b", at=1, case=training, code=code("new", digest="e"))
    (row,) = compared(tmp_path, metrics=("final_loss",)).rows
    assert (row.floor, row.change, row.regression, row.a) == (0.0, "worse", True, 1.0)


def test_single_launches_are_shown_and_inconclusive(results: Path) -> None:
    comparison = compared(results, "a00", "b00")
    assert (
        {row.change for row in comparison.rows} == {"inconclusive"}
        and comparison.rows[0].ratio == pytest.approx(1.5)
        and comparison.tests == 0
    )
    assert "few_launches" in warning_messages(comparison)
    assert run(results, "a00", "b00", "--fail-on", "regression") == 0


def test_two_machines_are_labelled_and_count_only_when_asked(tmp_path: Path) -> None:
    results = two_commits(tmp_path, SLOW, machine="m2")
    calibrate(results, "m2", 0.08)
    comparison = compared(results)
    assert (
        {row.change for row in comparison.rows} == {"different machines"}
        and comparison.regressions == 0
        and "different_machines" in warning_messages(comparison)
    )
    assert comparison.rows[0].finding == "higher" and comparison.rows[0].floor == pytest.approx(
        1.08 ** (6 / 8) ** 0.5 - 1
    )
    assert run(results, OLD, NEW, "--fail-on", "regression") == 0
    assert run(results, OLD, NEW, "--fail-on", "regression", "--across-machines") == 1


def test_the_number_of_comparisons_raises_every_p(tmp_path: Path) -> None:
    """Six blocks give p = 0.031 at best: enough for a single row, but not for one of three rows."""
    cases = [case(sizes=[1024], iterations=4, warmup=0, arm=arm) for arm in ("slower", "same", "equal")]
    for number, chosen in enumerate(cases):
        second = tuple(1.5 * value for value in FAST[:6]) if number == 0 else FAST[:6][::-1]
        launches(tmp_path, FAST[:6], f"a{number}", case=chosen, size="ci")
        launches(tmp_path, second, f"b{number}", case=chosen, size="smoke")
    calibrate(tmp_path)
    (alone,) = compared(tmp_path, f"{cases[0].case_id}@size:ci", "@size:smoke", metrics=LATENCY[1:]).rows
    assert alone.change == "worse" and alone.p_adjusted == alone.p_value
    among = compared(tmp_path, "@size:ci", "@size:smoke", metrics=LATENCY[1:])
    largest = max(among.rows, key=lambda row: row.ratio or 0)
    assert (
        among.tests == 3
        and largest.finding == "inconclusive"
        and (largest.p_adjusted or 0) > 0.05 > (largest.p_value or 1)
        and "--metric" in largest.why
    )


def test_a_case_of_which_no_launch_ended_well_in_b_is_a_regression(results: Path) -> None:
    other = case(sizes=[2048], iterations=4, warmup=0)
    launches(results, FAST, "c", case=other, code=code("0ld"))
    launches(results, FAST[:2], "d", at=1, case=other, code=code("new", digest="e"), status="failed")
    comparison = compared(results, metrics=("bytes_per_rank_ratio",))
    assert [pair.all_failed for pair in comparison.pairs].count(True) == 1 == comparison.regressions
    assert (
        "1 of 2 cases" in warning_messages(comparison)["failed"]
        and "2 of 10 launches of B failed" in warning_messages(comparison)["failed_launches"]
    )
    assert run(results, OLD, NEW, "--metric", "bytes_per_rank_ratio", "--fail-on", "regression") == 1


def test_a_side_without_a_good_launch_is_a_mistake(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = two_commits(tmp_path, FAST, status="failed")
    assert run(results, OLD, NEW) == 2
    assert "none of its 8 launches ended well; `scaleproof show b00`" in capsys.readouterr().err


def test_nothing_compared_is_no_success_for_ci(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    launches(results, FAST, "c", case=case(ranks=4, sizes=[1024]), code=code("4f"))
    assert run(results, OLD, "@commit:4f") == 0
    assert "ranks (2 here, 4 there)" in capsys.readouterr().out
    assert run(results, OLD, "@commit:4f", "--fail-on", "regression") == 2


def test_differences_of_environment_are_listed_and_warned_of(tmp_path: Path) -> None:
    launches(tmp_path, FAST, "a", code=code("0ld"), environment=HERE, facts={**RANK, "seeds": {"hash": 1}})
    launches(
        tmp_path,
        FAST,
        "b",
        at=1,
        code=code("new", dirty=True, digest="e"),
        environment=THERE,
        facts={**OTHER_RANK, "seeds": {"hash": 2}},
    )
    comparison = compared(tmp_path)
    assert {(row.part, row.name): (row.a, row.b) for row in comparison.environment} == {
        ("code", "commit"): (("0ld",), ("new",)),
        ("code", "digest"): (("d",), ("e",)),
        ("code", "local changes"): (("no",), ("yes",)),
        ("machine", "governor"): (("performance",), ("powersave",)),
        ("machine", "cpu_flags"): (("nothing else",), ("avx512f",)),
        ("libraries", "libnccl"): (("2.18.1, build 1",), ("2.19.3, build 2",)),
        ("threads", "thread_pools.openblas (libopen)"): (("1",), ("2",)),
        ("variables", "OMP_NUM_THREADS"): (("1",), ("2",)),
    }
    assert {row.part for row in comparison.environment if row.asked} == {"code"} and all(
        row.matters for row in comparison.environment
    )
    assert "libnccl (2.18.1, build 1 in A, 2.19.3, build 2 in B)" in warning_messages(comparison)["unequal_libraries"]
    assert {"unequal_machine", "unequal_threads", "unequal_variables", "local_changes"} <= warning_messages(
        comparison
    ).keys() and "unequal_code" not in warning_messages(comparison)


def test_a_fact_that_only_some_launches_of_a_side_share_is_shown_with_all_its_values(tmp_path: Path) -> None:
    launches(tmp_path, FAST[:4], "a", environment={"governor": "performance"}, size="ci")
    launches(tmp_path, FAST[:4], "b", environment={"governor": "performance"}, size="smoke")
    launches(tmp_path, FAST[:2], "c", at=1, environment={"governor": "powersave"}, size="smoke")
    (row,) = compared(tmp_path, "@size:ci", "@size:smoke").environment
    assert (row.a, row.b, row.matters) == (("performance",), ("performance", "powersave"), False)


def test_a_number_that_changes_from_launch_to_launch_is_no_difference(tmp_path: Path) -> None:
    for name, size, lag in (("a", "ci", 3), ("b", "ci", 5), ("c", "smoke", 7), ("d", "smoke", -9)):
        launches(tmp_path, FAST[:2], name, first=2 * ord(name), size=size, environment={"lag_ns": lag})
    assert compared(tmp_path, "@size:ci", "@size:smoke").environment == ()


def test_launches_with_warnings_of_their_own_are_counted(tmp_path: Path) -> None:
    hot = Warning(code="throttled", message="m", advice="a")
    comparison = compared(two_commits(tmp_path, FAST, warnings=[hot, hot]))
    assert "'throttled': 0 of 8 of A and 8 of 8 of B" in warning_messages(comparison)["launch_warning"]


def test_a_set_against_itself_is_all_equal_and_says_so(results: Path) -> None:
    comparison = compared(results, OLD, OLD)
    assert (
        {row.change for row in comparison.rows} == {"no difference"}
        and comparison.pairs[0].paired
        and "8 launches" in warning_messages(comparison)["same_launches"]
    )


def test_an_unknown_metric_is_one_line_with_the_nearest(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(results, OLD, NEW, "--metric", "latency") == 2
    assert "unknown metric 'latency'" in capsys.readouterr().err


def test_json_is_one_object_of_the_schema_with_all_that_the_text_says(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(results, OLD, NEW, "--json") == 0
    out = capsys.readouterr()
    comparison = Comparison.model_validate_json(out.out)
    assert comparison == compared(results) and out.err == ""
    assert json.loads(out.out)["pairs"][0]["rows"][0]["p_adjusted"] < 0.05


def test_output_that_is_not_a_terminal_has_no_colours(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(results, OLD, NEW)
    text = capsys.readouterr().out
    assert "\x1b" not in text
    row = next(line for line in text.splitlines() if line.strip().startswith("collective_latency"))
    assert all(word in row for word in ("1 KiB", "µs ↓", "+50.0 %", "5 %", " 8 ", "regression"))


def test_the_page_needs_no_other_file_and_escapes_what_it_shows(tmp_path: Path) -> None:
    from scaleproof.report.compare import write

    hostile = case(sizes=[1024], iterations=4, warmup=0, arm="<script>alert(1)</script>")
    launches(tmp_path, FAST, "a", case=hostile, code=code("0ld"))
    launches(tmp_path, SLOW, "b", at=1, case=hostile, code=code("new"), facts={"libraries": {"<img>.so": "1"}})
    text = write(tmp_path / "page" / "c.html", compared(tmp_path)).read_text()
    assert "<script>alert" not in text and "<img>" not in text and "&lt;script&gt;alert(1)" in text
    assert 'href="index.html"' not in text and 'src="' not in text and "claims.json" not in text
    assert 'id="collective_latency"' in text and "base64," in text
