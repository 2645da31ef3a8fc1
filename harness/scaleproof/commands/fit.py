"""Fits alpha (s per message), beta (s per byte sent), gamma (s per byte reduced) and the time of a call of every
transport to a suite's launches, for simulation. From launches that train it fits how unevenly ranks compute, from
windows of messages what a message takes of a core. It starts no launch."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
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

    from scaleproof.simulate.cost_file import Costs, Fit, GammaCost, LineCost, Parameter, TransportCost
    from scaleproof.simulate.processor_file import ProcessorTimes
    from scaleproof.simulate.tensor_file import TensorTimes
    from scaleproof.workloads.jitter_model import FittedJitter

    Fitted = Costs | FittedJitter | ProcessorTimes | TensorTimes

HELP = "alpha, beta and gamma of every transport, from ping-pongs and all-reduces"
EXAMPLE = "scaleproof fit --size smoke"
SUITE, EXPERIMENT = "micro", "costs"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command to `parser`."""
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
        help=f"experiment with ping-pongs and all-reduces (default: {EXPERIMENT})",
    )
    size_argument(parser)
    results_argument(parser)
    suites_argument(parser)
    parser.add_argument("--show", action="store_true", help="print the fitted values of this machine; fit nothing")


def main(options: argparse.Namespace) -> int:
    """Fit, store and print; 1 where no training shows jitter. With --show, print, and 1 if nothing was fitted on this
    machine."""
    if options.show:
        return _show(options)
    from scaleproof.calibrate.measured_costs import fit_costs
    from scaleproof.calibrate.measured_jitter import computes_for_real, fit_jitter, nothing_to_fit
    from scaleproof.calibrate.measured_processor import fit_processor, has_windows
    from scaleproof.calibrate.measured_tensors import fit_tensors, only_serves
    from scaleproof.spec.suite import load_suite

    size = size_of(options)
    suite = load_suite(options.suite, options.suites)
    cases = suite.experiment(options.experiment).size(size).cases
    store = open_store(options.results)
    jitter = fit_jitter(suite, options.experiment, size, store)
    if jitter is not None:
        _store_jitter(options.results, jitter)
    windows, trainings = any(map(has_windows, cases)), any(map(computes_for_real, cases))
    tensors = any(map(only_serves, cases))
    if tensors:
        _store_tensors(options.results, fit_tensors(suite, options.experiment, size, store))
    if windows:
        _store_processor(options.results, fit_processor(suite, options.experiment, size, store))
    if any(case.program in ("transfer", "collective") for case in cases) or not (windows or trainings or tensors):
        for costs in fit_costs(suite, options.experiment, size, store):
            _store(options.results, costs)
    elif jitter is None and not (windows or tensors):
        print(nothing_to_fit(suite, options.experiment, size, store), file=sys.stderr)
        return 1
    return 0


def _store(results: Path, costs: Costs) -> None:
    """Store and print the costs, unless stored ones come from a larger size."""
    from scaleproof.simulate.cost_file import read_costs, write_costs

    if _kept("costs", read_costs, results, costs):
        return
    path = write_costs(results, costs)
    print_costs(costs)
    print(path)


def _store_jitter(results: Path, jitter: FittedJitter) -> None:
    """Store and print the jitter, unless stored one comes from a larger size."""
    from scaleproof.workloads.jitter_model import read_jitter, write_jitter

    print(jitter_line(jitter))
    if not _kept("jitter", read_jitter, results, jitter):
        print(write_jitter(results, jitter))


def _store_processor(results: Path, times: ProcessorTimes) -> None:
    """Store and print times of cores, unless stored ones come from a larger size."""
    from scaleproof.simulate.processor_file import read_processor, write_processor

    if _kept("times of cores", read_processor, results, times):
        return
    path = write_processor(results, times)
    print_processor(times)
    print(path)


def _store_tensors(results: Path, times: TensorTimes) -> None:
    """Store and print times of tensors, unless stored ones come from a larger size."""
    from scaleproof.simulate.tensor_file import read_tensors, write_tensors

    if _kept("times of tensors", read_tensors, results, times):
        return
    path = write_tensors(results, times)
    print_tensors(times)
    print(path)


def _kept(what: str, read: Callable[[Path, str], Fitted | None], results: Path, new: Fitted) -> bool:
    """Whether the same code measured what is stored at a larger size, in any suite; says so. What another version has
    stored is replaced."""
    from scaleproof.spec.errors import SpecError
    from scaleproof.spec.suite_form import SIZES

    try:
        stored = read(results, new.machine)
    except SpecError:
        return False
    if stored is None or stored.code != new.code or SIZES.index(stored.size) <= SIZES.index(new.size):
        return False
    refit = f"`scaleproof fit {stored.suite} {stored.experiment} --size {stored.size}` fits them again"
    print(
        f"kept the {what} that the same code measured at size {stored.size} ({stored.suite} {stored.experiment}, "
        f"fitted {stored.fitted_at}); {refit}"
    )
    return True


def _show(options: argparse.Namespace) -> int:
    from scaleproof.record.digest import code_digest, machine_id
    from scaleproof.simulate.cost_file import read_costs
    from scaleproof.simulate.processor_file import read_processor
    from scaleproof.simulate.tensor_file import read_tensors
    from scaleproof.workloads.jitter_model import read_jitter

    costs = read_costs(options.results, machine_id())
    if costs is None:
        print(
            f"nothing was fitted for machine {machine_id()} in {options.results}; type `scaleproof fit`",
            file=sys.stderr,
        )
        return 1
    print_costs(costs)
    if (times := read_processor(options.results, machine_id())) is not None:
        print_processor(times)
    if (tensors := read_tensors(options.results, machine_id())) is not None:
        print_tensors(tensors)
    if (jitter := read_jitter(options.results, machine_id())) is not None:
        print(jitter_line(jitter))
    if costs.code != code_digest():
        print("the measuring code has changed since these launches")
    return 0


def jitter_line(jitter: FittedJitter) -> str:
    """A line on how unevenly ranks compute."""
    between = "no launch of two ranks" if jitter.rank_sigma is None else f"{jitter.rank_sigma:.2%} between ranks"
    late = (
        f"{jitter.straggler_share:.2%} of steps {jitter.straggler_factor:.3g} times as long"
        if jitter.straggler_share
        else "no stragglers"
    )
    source = f"{jitter.suite} {jitter.experiment} {jitter.size}, {jitter.steps} steps"
    return (
        f"computing differs by {jitter.step_sigma:.2%} from step to step, {between}, {late} ({source}; "
        f"{jitter.beyond:.1%} beyond what holds 95 %)"
    )


def print_costs(costs: Costs) -> None:
    """Print a row for each segment of the lines fitted to messages and to all-reduces."""
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
        "call (µs)",
        "gamma (ns/B)",
        "rounds, worst error",
    ]
    print_table(columns, [row for cost in costs.transports for row in _rows(cost)], title)
    if costs.handover_s is not None:
        print(f"from one thread of a rank to another: {_value(costs.handover_s, 1e6)} µs")


def print_processor(times: ProcessorTimes) -> None:
    """Print a row for each transport and side."""
    title = f"time of a core: {times.suite} {times.experiment} {times.size}, fitted {times.fitted_at}"
    columns = ["arm", "side", "a message (µs)", "a byte (ns)", "worst error"]
    rows = [
        [cost.arm, side, _value(time.message_s, 1e6), _value(time.byte_s, 1e9), f"{cost.worst_error:.1%}"]
        for cost in times.transports
        for side, time in (("send", cost.send), ("receive", cost.receive))
    ]
    print_table(columns, rows, title)


def print_tensors(times: TensorTimes) -> None:
    """Print a row for each transport."""
    title = f"servers, a tensor: {times.suite} {times.experiment} {times.size}, fitted {times.fitted_at}"
    columns = ["arm", "hand over (µs)", "begin (µs)", "serve (µs)"]
    rows = [
        [cost.arm, *(_value(each, 1e6) for each in (cost.push_s, cost.begin_s, cost.serve_s))]
        for cost in times.transports
    ]
    print_table(columns, rows, title)


def _rows(cost: TransportCost) -> list[list[str]]:
    network = (
        cost.fabric
        + (f", {cost.link_mbit:g} Mbit/s" if cost.link_mbit else "")
        + (f", {cost.link_delay_ms:g} ms" if cost.link_delay_ms else "")
    )
    rows = [
        [cost.arm, network, "one message", *row, "", "", ""]
        for row in (_segments(cost.transfer) if cost.transfer else [])
    ]
    for all_reduce in cost.all_reduces:
        reduced = (
            [
                _value(all_reduce.rounds.call_s, 1e6),
                "; ".join(map(_gamma, dict.fromkeys((all_reduce.rounds.gammas[0], all_reduce.rounds.gammas[-1])))),
                _error(all_reduce.rounds.fit),
            ]
            if all_reduce.rounds
            else ["no ping-pong", "", ""]
        )
        rows += [
            [cost.arm, network, f"all-reduce, {all_reduce.ranks} ranks", *row, *reduced]
            for row in _segments(all_reduce.call)
        ]
    return rows


def _segments(line: LineCost) -> list[list[str]]:
    from scaleproof.spec.units import format_bytes

    rows = []
    for segment in line.segments:
        upto = "larger" if segment.upto_nbytes is None else f"to {format_bytes(segment.upto_nbytes)}"
        upto = "any" if len(line.segments) == 1 else upto
        beta = segment.beta_s_per_byte
        rate = f"{1e-9 / beta.value:.4g}" if beta.value else "none"
        rows.append(
            [upto, _value(segment.alpha_s, 1e6), _value(beta, 1e9), rate, f"{line.fit.r_squared:.4f}", _error(line.fit)]
        )
    return rows


def _gamma(part: GammaCost) -> str:
    from scaleproof.spec.units import format_bytes

    return f"{_value(part.s_per_byte, 1e9)} at {format_bytes(part.nbytes)}"


def _value(parameter: Parameter, scale: float) -> str:
    interval = (
        f" [{parameter.low * scale:.3g}, {parameter.high * scale:.3g}]"
        if parameter.low is not None and parameter.high is not None
        else ""
    )
    return f"{parameter.value * scale:.4g}{interval}"


def _error(fit: Fit) -> str:
    from scaleproof.spec.units import format_bytes

    return f"{fit.worst_error:.1%} at {format_bytes(fit.worst_nbytes)}"
