"""A training case that a command names by its id, on fabric `simulated` with as many ranks as wanted."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from scaleproof.commands.common import results_argument, suites_argument

if TYPE_CHECKING:
    from scaleproof.spec.case import TrainCase


def case_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that name a case to `parser`."""
    parser.add_argument("case", metavar="CASE", help="a training case's id, or the beginning of one")
    parser.add_argument(
        "--ranks",
        type=int,
        metavar="N",
        help="number of ranks; each keeps its number of samples (default: the case's)",
    )
    results_argument(parser)
    suites_argument(parser)


def simulated_case(options: argparse.Namespace) -> TrainCase:
    """The training case that the options name, on fabric `simulated` with the requested number of ranks. SpecError if
    the id fits no case or several, or if the case does not work with these ranks."""
    from pydantic import ValidationError

    from scaleproof.spec.case import TrainCase, parse_case
    from scaleproof.spec.common_case import form_keys
    from scaleproof.spec.errors import SpecError
    from scaleproof.spec.messages import field_of, options_of, phrase

    case = _matching_case(options)
    ranks = case.ranks if options.ranks is None else options.ranks
    if ranks < 1:
        raise SpecError(f"--ranks {ranks}: give at least one")
    try:
        simulated = parse_case(_simulated_fields(case, ranks))
    except ValidationError as failed:
        error = failed.errors(include_url=False)[0]
        name = field_of(error) or str(error["loc"][-1])
        raise SpecError(
            f"case {case.case_id} on {ranks} ranks: {name}: "
            f"{phrase(error, form_keys(TrainCase), options_of(TrainCase, name))}"
        ) from None
    assert isinstance(simulated, TrainCase)
    return simulated


def _matching_case(options: argparse.Namespace) -> TrainCase:
    """The only training case of all suites whose id begins with the one in the options."""
    from scaleproof.commands.common import suites_of
    from scaleproof.spec.case import TrainCase
    from scaleproof.spec.errors import SpecError

    matches: dict[str, Any] = {}
    for suite in suites_of(None, options.suites):
        for experiment in suite.experiments.values():
            for size in experiment.sizes.values():
                matches |= {case.case_id: case for case in size.cases if case.case_id.startswith(options.case)}
    if not matches:
        raise SpecError(f"case {options.case!r} begins no case; `scaleproof run SUITE --dry-run` lists them")
    if len(matches) > 1:
        examples = ", ".join(sorted(matches)[:3])
        raise SpecError(f"case {options.case!r} begins {len(matches)} cases ({examples}, ...); write more of it")
    (case,) = matches.values()
    if not isinstance(case, TrainCase):
        raise SpecError(f"case {case.case_id} is of program {case.program!r}; a step is of `train`")
    return case


def _simulated_fields(case: TrainCase, ranks: int) -> dict[str, Any]:
    """Fields of the same case on fabric `simulated`, one rank per node; each rank keeps its number of samples."""
    servers = case.ranks - case.workers
    links = ("fabric.cluster", "fabric.link_mbit", "fabric.link_delay_ms", "fabric.costs")
    fields = {key: value for key, value in case.written().items() if not key.startswith("fabric.") or key in links}
    return fields | {
        "fabric": "simulated",
        "ranks": ranks,
        "nodes": ranks,
        "interface": "eth0",
        "minibatch": case.batch * max(ranks - servers, 1),
        "compute": "none" if case.compute == "none" else "replay",
        "dilation": 1.0,
        "shrink": 1.0,
    }
