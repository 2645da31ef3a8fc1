"""Several transports side by side: the same training over each, and which of them the ranges of their costs tell
apart."""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from scaleproof.commands.common import print_table
from scaleproof.spec import registry
from scaleproof.spec.errors import SpecError

if TYPE_CHECKING:
    from scaleproof.commands.predict_question import PredictionRequest
    from scaleproof.simulate.predicted_scaling import Point, Range

ALL = "all"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A transport with its prediction."""

    transport: str
    request: PredictionRequest
    points: Sequence[Point]


@dataclass(frozen=True, slots=True)
class Against:
    """How much longer a step over a transport takes than over a faster one (`fastest`: of the two, or of all), at one
    number of nodes."""

    transport: str
    fastest: str
    times: Range

    @property
    def separate(self) -> bool:
        """Whether the ranges of their costs tell the two apart."""
        return self.times.low > 1 or self.times.high < 1

    @property
    def sentence(self) -> str:
        """In words."""
        if self.times.low == self.times.high == 1:
            return f"{self.transport} and {self.fastest} have the same costs"
        ratio = f"{self.times.value:.4g} [{self.times.low:.4g}, {self.times.high:.4g}]"
        verdict = "they differ" if self.separate else "the ranges of their costs do not tell them apart"
        return f"a step over {self.transport} takes {ratio} times as long as over {self.fastest}: {verdict}"


def compare(options: argparse.Namespace) -> int:
    """Predicts each transport of `--transports`, and prints all of them."""
    from scaleproof.commands.predict_output import points_of

    candidates, left_out = _candidates(options)
    found = [Candidate(name, request, points_of(request)) for name, request in candidates]
    pairs = against_each_other(found)
    if options.json:
        print(json.dumps(_machine_form(found, pairs, left_out), indent=2))
        return 0
    _print(found, pairs)
    for name, reason in left_out:
        print(f"  not predicted: {name}: {reason}")
    return 0


def against_each_other(candidates: Sequence[Candidate]) -> list[Against]:
    """Every two transports at the largest number of nodes, the slower against the faster, draw by draw: what is
    uncertain for both is drawn alike."""
    from scaleproof.simulate.predicted_scaling import around
    from scaleproof.stats.prediction_intervals import ratios

    nodes = candidates[0].points[-1].nodes
    ordered = sorted(candidates, key=lambda each: each.points[-1].step_s.value)
    times = {each.transport: each.request.question.times(nodes) for each in ordered}
    return [
        Against(
            slower,
            faster,
            around([ratios(above, below) for above, below in zip(times[slower], times[faster], strict=True)]),
        )
        for faster, slower in itertools.combinations(times, 2)
    ]


def against_fastest(pairs: Sequence[Against]) -> list[Against]:
    """Those with the fastest of all."""
    return [each for each in pairs if each.fastest == pairs[0].fastest]


def alike(pairs: Sequence[Against]) -> list[str]:
    """For each transport but the fastest, the slower ones that the ranges of costs do not tell from it."""
    others: dict[str, list[str]] = {}
    for each in pairs:
        if each.fastest != pairs[0].fastest and not each.separate:
            others.setdefault(each.fastest, []).append(each.transport)
    return [f"{name} is not told apart from {', '.join(names)}" for name, names in others.items()]


def _candidates(options: argparse.Namespace) -> tuple[list[tuple[str, PredictionRequest]], list[tuple[str, str]]]:
    """The requests, and of `all` the transports that cannot be predicted, with the reason."""
    from scaleproof.commands.predict_question import prediction_request

    everything = options.transports == ALL
    names = registry.names("transport") if everything else options.transports.split(",")
    requests: list[tuple[str, PredictionRequest]] = []
    left_out: list[tuple[str, str]] = []
    for name in dict.fromkeys(names):
        try:
            request = prediction_request(argparse.Namespace(**{**vars(options), "transport": name}))
        except SpecError as error:
            if not everything:
                raise
            left_out.append((name, str(error)))
        else:
            requests.append((name, request))
    if not requests:
        raise SpecError(f"--transports {options.transports}: none can be predicted; {left_out[0][0]}: {left_out[0][1]}")
    return requests, left_out


def _print(candidates: Sequence[Candidate], pairs: Sequence[Against]) -> None:
    from scaleproof.commands.predict_output import chosen, computing, row, scaling, size

    first = candidates[0].request
    print(f"{size(first)}; {scaling(first)}")
    print(f"{computing(first)}; {first.fabric}")
    columns = ["transport", "nodes", "step (ms) ↓", "samples/s ↑", "efficiency ↑", "exposed (ms) ↓", "binds"]
    rows = []
    for number in range(len(candidates[0].points)):
        for each in sorted(candidates, key=lambda candidate: candidate.points[number].step_s.value):
            cells = row(each.points[number], " ")
            rows.append([each.transport, cells[0], cells[2], cells[3], cells[5], cells[6], cells[7]])
    print_table(columns, rows)
    print(f"at {candidates[0].points[-1].nodes} nodes")
    for other in against_fastest(pairs):
        print(f"  {other.sentence}")
    for sentence in alike(pairs):
        print(f"  {sentence}")
    for each in candidates:
        for line in chosen(each.points[-1]):
            print(line)
        print(f"costs of {each.transport}: {each.request.question.costs.source}")


def _machine_form(
    candidates: Sequence[Candidate], pairs: Sequence[Against], left_out: Sequence[tuple[str, str]]
) -> dict[str, Any]:
    from dataclasses import asdict

    return {
        "evidence": "simulated",
        "transports": [
            {
                "transport": each.transport,
                "costs": each.request.question.costs.source,
                "assumed": list(each.request.question.costs.assumed),
                "points": [
                    {**asdict(point), "efficiency": asdict(point.efficiency), "binds": point.binds}
                    for point in each.points
                ],
            }
            for each in candidates
        ],
        "against_fastest": [asdict(each) | {"separate": each.separate} for each in against_fastest(pairs)],
        "told_apart": [{"transports": [each.fastest, each.transport], "separate": each.separate} for each in pairs],
        "not_predicted": dict(left_out),
    }
