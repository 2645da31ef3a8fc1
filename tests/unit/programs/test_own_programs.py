"""A suite's own programs, loaded in the process that also looks at the code that they use; sleeping in place of
computing."""

from __future__ import annotations

import ast
from types import SimpleNamespace
from typing import Any

import pytest

from scaleproof.paths import PROJECT
from scaleproof.programs import common
from scaleproof.programs.own import load_entry
from scaleproof.record import used_code
from scaleproof.spec.case import OwnCase
from scaleproof.spec.launch_kind import sleeps
from scaleproof.spec.suite import load_suite
from tests.short_form import case_from, train_case

SUITES = PROJECT / "suites"


def test_the_code_of_a_program_is_known_after_its_module_was_loaded() -> None:
    folder = PROJECT / "suites" / "crosscheck"
    case = next(case for case in load_suite(folder).experiments["tcp"].sizes["ci"].cases if case.arm == "iperf3")
    load_entry(folder / "programs", "iperf3")  # it imports its neighbour suite_programs.tools
    for cached in (used_code._hashes, used_code._source, used_code._folders):
        cached.cache_clear()
    assert "scaleproof.rank.process_lifetime" in used_code.used_files(case, str(folder / "programs"))


def own_case(**options: int) -> OwnCase:
    fields = {"suite": "t", "experiment": "t", "arm": "t", "program": "own", "entry": "t", "ranks": 2}
    case = case_from({**fields, "options": options})
    assert isinstance(case, OwnCase)
    return case


def test_only_a_case_that_says_so_sleeps_in_place_of_computing(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(common, "time", SimpleNamespace(sleep=slept.append))
    for case in (own_case(), own_case(slept=0), train_case(workload="dnn_digits")):
        context: Any = SimpleNamespace(case=case)
        with pytest.raises(ValueError, match="slept"):
            common.sleep_for_compute(context, 1.0)
    context = SimpleNamespace(case=own_case(slept=1))
    common.sleep_for_compute(context, 1.0)
    assert slept == [1.0]


def test_a_program_sleeps_only_in_polls_of_constant_length() -> None:
    """Every other sleep stands for work, and goes through `sleep_for_compute`."""
    hidden = [
        f"{path.relative_to(PROJECT)}:{node.lineno}"
        for path in sorted(SUITES.glob("*/programs/*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in ("time.sleep", "sleep")
        and not isinstance(node.args[0], ast.Constant)
        and not ast.unparse(node.args[0]).isupper()
    ]
    assert hidden == []


@pytest.mark.parametrize(("compute", "asleep"), [("real", False), ("none", False), ("replay", True)])
def test_replayed_compute_is_slept_and_real_compute_is_not(compute: str, asleep: bool) -> None:
    assert sleeps(train_case(workload="dnn_digits", compute=compute)) is asleep


def test_lemma_1_is_run_on_real_compute_too_and_the_models_traffic_never_is() -> None:
    arms = {
        (suite, experiment): {
            case.arm: sleeps(case)
            for size in load_suite(SUITES / suite).experiments[experiment].sizes.values()
            for case in size.cases
        }
        for suite, experiment in (("zou2017", "overhead"), ("xue2019", "traffic"), ("crosscheck", "arithmetic"))
    }
    overhead = arms.pop(("zou2017", "overhead"))
    assert not overhead.pop("multiplied") and all(overhead.values())
    assert all(asleep for of_experiment in arms.values() for asleep in of_experiment.values())
