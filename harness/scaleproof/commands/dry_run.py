"""What `scaleproof run --dry-run` prints: cases, launches, and an estimate of time and memory."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scaleproof.commands.common import open_store, print_table

if TYPE_CHECKING:
    from scaleproof.record.machine import MachineProfile
    from scaleproof.spec.case import AnyCase
    from scaleproof.spec.estimate import Earlier, Estimate
    from scaleproof.spec.experiment import Stop
    from scaleproof.spec.plan import PlannedLaunch
    from scaleproof.spec.suite import Suite


def dry_run(suite: Suite, plans: Mapping[str, Sequence[PlannedLaunch]], size: str, results: Path) -> int:
    """Print cases, launches and an estimate of time and memory."""
    from scaleproof.record.digest import machine_id
    from scaleproof.record.machine import read_profile
    from scaleproof.spec.estimate import ASSUMPTIONS, estimate
    from scaleproof.spec.units import format_bytes, format_seconds

    earlier = earlier_launches(results)
    total, peak, at_least = 0.0, 0, False
    for name, launches in plans.items():
        planned = {launch.case.case_id for launch in launches}
        cases = [case for case in suite.experiment(name).size(size).cases if case.case_id in planned]
        estimates = {case.case_id: estimate(case, earlier) for case in cases}
        _print_cases(suite, name, size, launches, estimates)
        _print_stopping_rule(suite.experiment(name).size(size).stop)
        total += sum(estimates[launch.case.case_id].seconds for launch in launches)
        peak = max([peak, *(cost.nbytes for cost in estimates.values())])
        at_least = at_least or any(cost.at_least for cost in estimates.values())
    about = "at least" if at_least else "about"
    print(
        f"{sum(map(len, plans.values()))} launches, {about} {format_seconds(total)} and up to {format_bytes(peak)} of "
        f"memory (formula: {ASSUMPTIONS})"
    )
    print_undecidable(suite, plans, size, read_profile(results, machine_id()))
    _warn_about_memory(peak)
    return 0


def _print_cases(
    suite: Suite, experiment: str, size: str, launches: Sequence[PlannedLaunch], estimates: Mapping[str, Estimate]
) -> None:
    """A row per case. `estimates`: of one launch, by case id, in the order of the rows."""
    from scaleproof.spec.plan import order_seed
    from scaleproof.spec.units import format_bytes, format_seconds

    cases = {launch.case.case_id: launch.case for launch in launches}
    counts = Counter(launch.case.case_id for launch in launches)
    fields = changing([cases[case_id] for case_id in estimates])
    rows = [
        [
            case_id,
            cases[case_id].arm,
            *(_cell(cases[case_id], field) for field in fields),
            str(counts[case_id]),
            ("at least " if cost.at_least else "") + format_seconds(cost.seconds),
            format_bytes(cost.nbytes),
            _source(cost),
        ]
        for case_id, cost in estimates.items()
    ]
    campaigns = len({launch.campaign for launch in launches})
    title = (
        f"{suite.name} {experiment} {size}: {len(rows)} cases, {len(launches)} launches"
        + (f" in {campaigns} campaigns" if campaigns > 1 else "")
        + f", order seed {order_seed(suite.name, experiment, size, launches[0].campaign)}"
    )
    print_table(["case", "arm", *fields, "launches", "time each", "memory", "estimated from"], rows, title)


def _source(cost: Estimate) -> str:
    if not cost.launches:
        return "formula"
    return f"{cost.launches} launches of its network" if cost.of_network else f"{cost.launches} earlier launches"


def _print_stopping_rule(stop: Stop | None) -> None:
    from scaleproof.spec.units import format_bytes

    if stop is not None and stop.metric is None:
        minutes = "" if stop.minutes is None else f" or {stop.minutes:g} minutes a claim"
        print(
            f"goes on until the interval of each claim's number reaches no further than {stop.target:.1%} from it, up "
            f"to {stop.budget} launches a case{minutes}\n"
        )
    elif stop is not None and stop.metric is not None:
        quantity = stop.metric + (f" at {format_bytes(stop.nbytes)}" if stop.nbytes else "")
        print(
            f"goes on until the interval of {quantity} reaches no further than {stop.target:.0%} from its median, "
            f"up to {stop.budget} launches a case\n"
        )


def print_undecidable(suite: Suite, plans: Mapping[str, object], size: str, profile: MachineProfile | None) -> None:
    """The claims that these launches cannot decide on a machine with this profile. Cases that cannot run here
    add no noise."""
    from scaleproof.claims.claims_yaml import load_claims
    from scaleproof.claims.decidable import lacks_floor, machine_noise, undecidable
    from scaleproof.claims.power import Launches, unjudged
    from scaleproof.record.host import usable_cores

    cores = usable_cores()
    launches, unknown, here = Launches(suite, size), 0, _runnable(suite)
    claims = [claim for claim in load_claims(suite) if claim.form.experiment in plans]
    for claim in claims:
        for found in undecidable(claim, launches, lambda each, cases: machine_noise(profile, cores, each, here(cases))):
            print(found.sentence)
        evidences = launches.evidences(claim) if unjudged(claim, size) is None else []
        of_evidences = (here(launches.cases(claim, evidence)) for evidence in evidences)
        unknown += any(lacks_floor(profile, cores, claim, cases) for cases in of_evidences)
    if claims and profile is None:
        print("what these launches can decide on this machine is not known: `scaleproof calibrate` measures its noise")
    elif unknown:
        command = f"scaleproof calibrate {suite.name} --size {size}"
        lack = f"{unknown} of {len(claims)} claims lack a noise floor, without which their times decide nothing"
        print(f"{lack}: after these launches `{command}` gets it from them, or measures it")


def _runnable(suite: Suite) -> Callable[[Sequence[AnyCase]], list[AnyCase]]:
    """Which of some cases can run on this machine."""
    from scaleproof.launch.preflight.case_preflight import obstacle
    from scaleproof.spec.programs import programs_folder

    programs, known = str(programs_folder(suite.folder).absolute()), dict[str, bool]()

    def runs(case: AnyCase) -> bool:
        if case.case_id not in known:
            known[case.case_id] = obstacle(case, programs) is None
        return known[case.case_id]

    return lambda cases: [case for case in cases if runs(case)]


def changing(cases: Sequence[AnyCase]) -> list[str]:
    """The fields in which the cases differ, except the arm's name."""
    values = [case.flat() for case in cases]
    fields = dict.fromkeys(field for value in values for field in value)
    return [field for field in fields if field != "arm" and len({repr(value.get(field)) for value in values}) > 1]


def _cell(case: AnyCase, field: str) -> str:
    value = case.value(field, "")
    if isinstance(value, tuple):
        return f"{len(value)} values"
    if value is None:
        return ""
    return f"{value:g}" if isinstance(value, float) else str(value)


def earlier_launches(results: Path) -> Earlier:
    """The finished launches of a folder of records."""
    from scaleproof.record.digest import machine_id
    from scaleproof.spec import virtual_gradients
    from scaleproof.spec.case import TrainCase
    from scaleproof.spec.estimate import Earlier

    if not (results / "runs").is_dir():
        return Earlier()
    seconds, gradients = dict[str, list[float]](), dict[tuple[Any, ...], list[float]]()
    here = machine_id()
    for record in open_store(results).records():
        case = record.case
        if record.status != "ok":
            continue
        seconds.setdefault(record.case_id, []).append(record.wall_s)
        if record.machine == here and isinstance(case, TrainCase) and virtual_gradients.computes(case):
            each = record.wall_s / virtual_gradients.count(case)
            gradients.setdefault(virtual_gradients.kind(case), []).append(each)
    return Earlier(seconds, gradients)


def _warn_about_memory(nbytes: int) -> None:
    import psutil

    from scaleproof.spec.units import format_bytes

    available = psutil.virtual_memory().available
    if nbytes > available:
        print(
            f"warning: {format_bytes(nbytes)} is more than the {format_bytes(available)} that are free here",
            file=sys.stderr,
        )
