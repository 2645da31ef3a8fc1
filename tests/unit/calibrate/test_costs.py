"""Costs are fitted from records, stored, printed and shown on the page; what cannot be fitted is named."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from scaleproof.calibrate.measured_costs import fit_costs
from scaleproof.cli import main
from scaleproof.record.store import Store
from scaleproof.report.build import build
from scaleproof.simulate.alpha_beta_fit import fit_line
from scaleproof.simulate.cost_file import costs_file, read_costs, write_costs
from scaleproof.simulate.cost_fit import fit_transfer
from scaleproof.simulate.reduction_fit import fit_reduction
from scaleproof.spec.errors import SpecError
from scaleproof.spec.suite import load_suite
from tests.unit.report.report_results import make

SIZES = 4.0 ** np.arange(1, 8)
SUITE = """
suite: example
title: messages
experiments:
  costs:
    summary: messages
    base: {iterations: 3, warmup: 0, sizes: [0, 64 B, 1 KiB, 16 KiB, 64 KiB, 1 MiB]}
    arms: {tcp: {transport: tcp, collective: ring}, horovod: {transport: horovod}, gloo: {transport: gloo}}
    sizes:
      smoke:
        launches: 6
        matrix: [{arms: [tcp, gloo], sweep: {program: [transfer, collective]}, set: {ranks: 2}}, {arms: [horovod],
          set: {ranks: 2, program: collective}}]
      small: {launches: 1, matrix: [{arms: [gloo], set: {ranks: 2, program: collective, sizes: [64 B, 1 KiB]}}]}
      full: {launches: 1, matrix: [{arms: [tcp], set: {ranks: 2, program: transfer, sizes: [7 B]}}]}
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Launches of 6 blocks, one of which is missing, one failed, one not runnable."""
    root = tmp_path_factory.mktemp("costs")
    folder = root / "suites" / "example"
    folder.mkdir(parents=True)
    (folder / "suite.yaml").write_text(SUITE)
    make(root / "results", load_suite(folder), "smoke")
    return root / "results"


def example(results: Path):
    return load_suite(results.parent / "suites" / "example")


def test_every_transport_gets_what_its_launches_allow(results: Path) -> None:
    [costs] = fit_costs(example(results), "costs", "smoke", Store(results))
    costs_by_arm = {transport_costs.arm: transport_costs for transport_costs in costs.transports}
    assert set(costs_by_arm) == {"tcp", "gloo", "horovod"} and costs.machine == "madeup"
    assert costs_by_arm["horovod"].transfer is None and costs_by_arm["horovod"].all_reduces[0].rounds is None
    assert costs_by_arm["horovod"].all_reduces[0].call.segments[-1].beta_s_per_byte.value > 0
    tcp = costs_by_arm["tcp"].transfer
    assert tcp is not None and [point.nbytes for point in tcp.points] == [64, 1024, 16384, 65536, 1 << 20]
    assert tcp.fit.r_squared > 0.95
    rounds = costs_by_arm["tcp"].all_reduces[0].rounds
    assert rounds is not None and (rounds.algorithm, rounds.assumed) == ("ring", False)
    assert costs_by_arm["gloo"].all_reduces[0].rounds is not None and costs_by_arm["gloo"].all_reduces[0].rounds.assumed
    assert set(costs_by_arm["tcp"].runs) <= {record.launch for record in Store(results).records()}


def test_stored_costs_are_read_back_and_another_form_is_named(results: Path, tmp_path: Path) -> None:
    [costs] = fit_costs(example(results), "costs", "smoke", Store(results))
    assert read_costs(tmp_path, costs.machine) is None
    write_costs(tmp_path, costs)
    assert read_costs(tmp_path, costs.machine) == costs
    costs_file(tmp_path, costs.machine).write_text('{"schema_version": 0}')
    with pytest.raises(SpecError, match="costs.json: no costs of this version; `scaleproof fit` makes new ones"):
        read_costs(tmp_path, costs.machine)


def test_the_command_stores_and_prints_and_the_page_shows_what_was_fitted(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    suites = results.parent / "suites"
    assert main(["fit", "example", "--results", str(results), "--suites", str(suites)]) == 0
    printed = capsys.readouterr().out
    assert (
        str(costs_file(results, "madeup")) in printed and "all-reduce, 2 ranks" in printed and "no ping-pong" in printed
    )
    page = (build(results, tmp_path, "smoke", [example(results)]).parent / "costs.html").read_text()
    assert page.count("<figure") == 5 and "assumed" in page and "madeup" in page


def test_costs_that_another_version_fitted_are_replaced(results: Path) -> None:
    costs_file(results, "madeup").parent.mkdir(parents=True, exist_ok=True)
    costs_file(results, "madeup").write_text('{"schema_version": 0}')
    assert main(["fit", "example", "--results", str(results), "--suites", str(results.parent / "suites")]) == 0
    assert read_costs(results, "madeup") is not None


def test_an_experiment_without_messages_or_all_reduces_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "suites" / "example"
    folder.mkdir(parents=True)
    matrix = "[{arms: [tcp], set: {ranks: 2, program: collective, operation: broadcast}}]"
    others = re.sub(r"matrix: \[\{arms: \[tcp, gloo\].*\n.*", f"matrix: {matrix}", SUITE)
    (folder / "suite.yaml").write_text(others)
    make(tmp_path / "results", load_suite(folder), "smoke")
    assert main(["fit", "example", "--results", str(tmp_path / "results"), "--suites", str(tmp_path / "suites")]) == 2
    assert "no finished ping-pong or all-reduce" in capsys.readouterr().err


def test_costs_of_a_larger_size_are_kept_until_the_code_changes(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["fit", "example", "--results", str(results), "--suites", str(results.parent / "suites")]
    larger = fit_costs(example(results), "costs", "smoke", Store(results))[0].model_copy(update={"size": "full"})
    write_costs(results, larger)
    assert main(arguments) == 0 and "measured at size full" in capsys.readouterr().out
    assert read_costs(results, "madeup") == larger
    write_costs(results, larger.model_copy(update={"code": "another"}))
    assert main(arguments) == 0
    assert (stored := read_costs(results, "madeup")) is not None and stored.size == "smoke"


def test_a_machine_without_costs_says_what_to_type(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fit", "--show", "--results", str(tmp_path)]) == 1
    assert "type `scaleproof fit`" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["example", "cost"], "no experiment 'cost'; did you mean 'costs'?"),
        (["example", "--size", "huge"], "unknown size 'huge'"),
        (["example", "--size", "ci"], "no size 'ci'"),
        (["example", "--size", "full"], "no finished ping-pong or all-reduce of example costs at size full"),
    ],
)
def test_what_cannot_be_fitted_is_a_one_line_error(
    results: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fit", *arguments, "--results", str(results), "--suites", str(results.parent / "suites")]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("nbytes", "times", "message"),
    [
        (SIZES[:2], np.ones((6, 2)), "transfer over x: 2 message sizes; a line of time over size needs at least 3"),
        (SIZES, np.empty((0, len(SIZES))), "transfer over x: no launch has times at all 7 message sizes"),
        (SIZES, np.ones(len(SIZES)), "transfer over x: no launch has times at all 7 message sizes"),
        (SIZES[::-1], np.ones((6, len(SIZES))), "transfer over x: message sizes must increase"),
        (SIZES, np.zeros((6, len(SIZES))), "transfer over x: a time is missing, zero or negative"),
        (SIZES, np.full((6, len(SIZES)), np.nan), "transfer over x: a time is missing, zero or negative"),
    ],
)
def test_invalid_times_are_named(nbytes: np.ndarray, times: np.ndarray, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        fit_transfer("transfer over x", nbytes, times)


def test_no_part_is_ever_negative() -> None:
    assert fit_line(SIZES, 1e-3 - 1e-8 * SIZES)[1] == 0
    assert fit_line(SIZES, 1e-9 * SIZES)[0] == pytest.approx(0, abs=1e-15)
    sent = (1e-5 + 1e-9 * SIZES)[None]
    fit = fit_reduction("x", fit_transfer("x", SIZES, sent), "ring", 2, SIZES, sent, (SIZES, sent))
    assert fit.gammas[0].value.value == 0  # twice the messages' latency is more than the all-reduce took
