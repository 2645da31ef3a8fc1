"""Fits alpha (s a message), beta (s a byte sent) and gamma (s a byte reduced) of every transport to a suite's launches,
and how unevenly ranks compute to those that train, for simulation; starts nothing."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from scaleproof.commands.common import (
    open_store,
    print_table,
    results_argument,
    size_argument,
    size_of,
    suites_argument,
)

if TYPE_CHECKING:
    from pathlib import Path

    from scaleproof.simulate.cost_file import Costs, Fit, LineCost, Parameter, TransportCost
    from scaleproof.simulate.jitter_model import FittedJitter

HELP = "alpha, beta and gamma of every transport, from ping-pongs and all-reduces"
EXAMPLE = "scaleproof fit --size smoke"
SUITE, EXPERIMENT = "micro", "costs"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare them."""
    parser.add_argument(
        "suite",
        metavar="SUITE",
        nargs="?",
        default=SUITE,
        help=f"a suite's name, or the path of its folder (default: {SUITE})",
    )
    parser.add_argument(
        "experiment",
        metavar="EXPERIMENT",
        nargs="?",
        default=EXPERIMENT,
        help=f"with its ping-pongs and all-reduces (default: {EXPERIMENT})",
    )
    size_argument(parser)
    results_argument(parser)
    suites_argument(parser)
    parser.add_argument("--show", action="store_true", help="print what is known of this machine; fit nothing")


def main(given: argparse.Namespace) -> int:
    """Fit, store, print; with --show 1 when nothing was fitted here."""
    if given.show:
        return _show(given)
    from scaleproof.calibrate.measured_costs import fit_costs
    from scaleproof.calibrate.measured_jitter import fit_jitter
    from scaleproof.simulate.jitter_model import write_jitter
    from scaleproof.spec.suite import load_suite

    size = size_of(given)
    suite = load_suite(given.suite, given.suites)
    cases = suite.experiment(given.experiment).size(size).cases
    jitter = fit_jitter(suite, given.experiment, size, open_store(given.results))
    if jitter is not None:
        print(jitter_line(jitter))
        print(write_jitter(given.results, jitter))
    if jitter is not None and not any(case.program in ("transfer", "collective") for case in cases):
        return 0
    for costs in fit_costs(suite, given.experiment, size, open_store(given.results)):
        _store(given.results, costs)
    return 0


def _store(results: Path, costs: Costs) -> None:
    """And print; costs of a larger size stay."""
    from scaleproof.simulate.cost_file import write_costs

    if (kept := _larger(results, costs)) is not None:
        again = f"`scaleproof fit {kept.suite} {kept.experiment} --size {kept.size}` makes them anew"
        print(
            f"kept the costs that the same code measured at size {kept.size} ({kept.suite} {kept.experiment}, "
            f"fitted {kept.fitted_at}); {again}"
        )
        return
    path = write_costs(results, costs)
    print_costs(costs)
    print(path)


def _larger(results: Path, costs: Costs) -> Costs | None:
    """What is known of these costs' machine from a larger size, of whatever suite, measured by the same code."""
    from scaleproof.simulate.cost_file import read_costs
    from scaleproof.spec.suite import SIZES

    known = read_costs(results, costs.machine)
    if known is None or known.code != costs.code:
        return None
    return known if SIZES.index(known.size) > SIZES.index(costs.size) else None


def _show(given: argparse.Namespace) -> int:
    from scaleproof.record.digest import code_digest, machine_id
    from scaleproof.simulate.cost_file import read_costs
    from scaleproof.simulate.jitter_model import read_jitter

    costs = read_costs(given.results, machine_id())
    if costs is None:
        print(
            f"nothing was fitted for machine {machine_id()} in {given.results}; type `scaleproof fit`", file=sys.stderr
        )
        return 1
    print_costs(costs)
    if (jitter := read_jitter(given.results, machine_id())) is not None:
        print(jitter_line(jitter))
    if costs.code != code_digest():
        print("the measuring code has changed since these launches")
    return 0


def jitter_line(found: FittedJitter) -> str:
    """How unevenly ranks compute."""
    between = "no launch of two ranks" if found.rank_sigma is None else f"{found.rank_sigma:.2%} between ranks"
    late = (
        f"{found.straggler_share:.2%} of steps {found.straggler_factor:.3g} times as long"
        if found.straggler_share
        else "no stragglers"
    )
    where = f"{found.suite} {found.experiment} {found.size}, {found.steps} steps"
    return (
        f"computing differs by {found.step_sigma:.2%} from step to step, {between}, {late} ({where}; "
        f"{found.beyond:.1%} beyond what holds 95 %)"
    )


def print_costs(costs: Costs) -> None:
    """A line for each segment of a transport's messages and of its all-reduce as a whole."""
    title = f"machine {costs.machine}: {costs.suite} {costs.experiment} {costs.size}, fitted {costs.fitted_at}"
    columns = [
        "arm",
        "fabric",
        "call",
        "bytes",
        "alpha (µs)",
        "beta (ns/B)",
        "1/beta (GB/s)",
        "R²",
        "worst error",
        "gamma (ns/B)",
        "rounds, worst error",
    ]
    print_table(columns, [row for found in costs.transports for row in _rows(found)], title)


def _rows(found: TransportCost) -> list[list[str]]:
    where = (
        found.fabric
        + (f", {found.link_mbit:g} Mbit/s" if found.link_mbit else "")
        + (f", {found.link_delay_ms:g} ms" if found.link_delay_ms else "")
    )
    rows = [
        [found.arm, where, "one message", *row, "", ""] for row in (_segments(found.transfer) if found.transfer else [])
    ]
    for one in found.all_reduces:
        reduced = (
            [_value(one.rounds.gamma_s_per_byte, 1e9), _error(one.rounds.fit)] if one.rounds else ["no ping-pong", ""]
        )
        rows += [[found.arm, where, f"all-reduce, {one.ranks} ranks", *row, *reduced] for row in _segments(one.call)]
    return rows


def _segments(line: LineCost) -> list[list[str]]:
    from scaleproof.spec.units import format_bytes

    rows = []
    for segment in line.segments:
        upto = (
            "any"
            if len(line.segments) == 1
            else "larger"
            if segment.upto_nbytes is None
            else f"to {format_bytes(segment.upto_nbytes)}"
        )
        beta = segment.beta_s_per_byte
        rate = f"{1e-9 / beta.value:.4g}" if beta.value else "none"
        rows.append(
            [upto, _value(segment.alpha_s, 1e6), _value(beta, 1e9), rate, f"{line.fit.r_squared:.4f}", _error(line.fit)]
        )
    return rows


def _value(found: Parameter, scale: float) -> str:
    interval = (
        f" [{found.low * scale:.3g}, {found.high * scale:.3g}]"
        if found.low is not None and found.high is not None
        else ""
    )
    return f"{found.value * scale:.4g}{interval}"


def _error(fit: Fit) -> str:
    from scaleproof.spec.units import format_bytes

    return f"{fit.worst_error:.1%} at {format_bytes(fit.worst_nbytes)}"
