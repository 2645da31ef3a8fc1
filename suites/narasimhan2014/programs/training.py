"""Trains a support vector machine by several heuristics of shrinking, one after the other in drawn order, on rows that
are divided over all ranks; a single rank also times scikit-learn's SVC (LIBSVM). What each has found is compared after
the timed region: its objective and violation over all samples, its predictions, and on several ranks its alpha with
that of one process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from suite_programs import library
from suite_programs.alone import exchange, solve_alone, solve_quarter
from suite_programs.blocks import block
from suite_programs.data_sets import look_up, problem
from suite_programs.heuristics import ORIGINAL, Heuristic, heuristic
from suite_programs.messages import Messages
from suite_programs.options import check_options
from suite_programs.solver import Machine
from suite_programs.task import Task, untimed

from scaleproof.collectives.group import Group, open_group
from scaleproof.core.context import RankContext
from scaleproof.core.recorder import now
from scaleproof.programs.common import leave, mark, timed_iterations
from scaleproof.spec.case import AnyCase, OwnCase
from scaleproof.spec.errors import SpecError
from scaleproof.transports.contract import Collectives
from scaleproof.workloads.inputs.findings import BadInput

WARM_ITERATIONS = 8


@dataclass(frozen=True, slots=True)
class Found:
    """What a solution is worth, over all samples. `predictions`: -1 or +1, of training samples and then test samples;
    `alpha`: of all training samples."""

    objective: float
    violation: float
    accuracy: float
    predictions: np.ndarray
    alpha: np.ndarray


def preload(case: OwnCase) -> tuple[str, ...]:
    """Modules that the ranks' parent imports: scikit-learn's, which take longer than a short launch, where they are
    used."""
    uses_library = set(str(case.options["variants"]).split()) & set(library.NAMES)
    return ("sklearn.svm",) if uses_library else ()


def obstacle(case: AnyCase) -> tuple[str, str] | None:
    """Options and data that make no solution, before anything is started."""
    assert isinstance(case, OwnCase)
    try:
        check_options(case)
        look_up(str(case.options["data"]))
    except (SpecError, BadInput) as error:
        return str(error), "mend the file, or the case's options"
    return None


def run(context: RankContext) -> None:
    """Options: `data` (data_sets.py), `samples` (of drawn data), `variants`: names of heuristics, `library` and
    `library_unshrunk`; `eps`; `most`: iterations of a solution, 0: any number; `parts`: of how many
    ranks the smallest says when samples are looked through again (solver.py); `cache_mb`: of the library's kernel
    cache; `alone`: 1: rank 0 solves once more by itself; `exchanges`: how often ranks exchange what an iteration does
    (alone.py). Events: `solve` of each variant, by its place in `variants`, and values that models/ turn into
    metrics."""
    case = context.case
    assert isinstance(case, OwnCase)
    of = case.options
    context.at(-1, "data")
    made = problem(str(of["data"]), int(of["samples"]), context.seed)
    if len(made.train) < case.ranks:
        raise SpecError(f"data {of['data']}: {len(made.train)} training samples for {case.ranks} ranks")
    names = str(of["variants"]).split()
    chosen = {name: heuristic(name, len(made.train)) for name in names if name not in library.NAMES}
    group = open_group(context) if case.transport is not None else None
    try:
        own = block(made.train, case.ranks, context.rank)
        messages = Messages(group, len(own), made.train.longest, made.train.features, _broadcaster(context, group))
        task = Task(made, float(of["eps"]), float(of["most"]) or np.inf, int(of["parts"]), messages)
        machines = _timed(context, task, names, chosen)
        found = _compare(context, task, names, machines)
        base = names.index(ORIGINAL) if ORIGINAL in names else 0
        exchange(context, task, base, int(of["exchanges"]))
        if int(of["alone"]) and context.rank == 0:
            solve_quarter(context, task, base)
            if case.ranks > 1:
                solve_alone(context, task, names, chosen, {name: each.alpha for name, each in found.items()})
        if group is not None:
            group.barrier()
    finally:
        if group is not None:
            leave(context, group)


def _broadcaster(context: RankContext, group: Collectives | None) -> Collectives | None:
    """Rows go down a binomial tree, log2 ranks messages deep: recursive doubling, the best for an all-reduce of a few
    bytes, would scatter and gather a row in twice as many."""
    return Group(group.transport, "tree", context.post) if isinstance(group, Group) else None


def _timed(
    context: RankContext, task: Task, names: list[str], chosen: dict[str, Heuristic]
) -> dict[str, Machine | library.Fitted]:
    """Solves each variant. All ranks meet before each, so that none waits for another's data."""
    case, group = context.case, task.messages.group
    assert isinstance(case, OwnCase)
    task.machine().solve(Heuristic("warm", 5, "multi"), task.eps, WARM_ITERATIONS, 1, untimed)
    results, order = dict[str, Machine | library.Fitted](), np.random.default_rng([context.seed, 7])
    _meet(group)
    mark(context, "start", 0, group)
    for _ in timed_iterations(context, 0, 1):
        for name in order.permutation(names).tolist():
            context.at(names.index(name), name)
            if name in chosen:
                machine = results[name] = task.machine()
                _meet(group)
                with context.recorder.span("solve", names.index(name)):
                    _solve(context, task, names.index(name), machine, chosen[name])
            elif case.ranks == 1:
                results[name] = _fit(context, task, names.index(name), name)
    mark(context, "end", 0, group)
    return results


def _fit(context: RankContext, task: Task, number: int, name: str) -> library.Fitted:
    """The time is that of the fit alone."""
    assert isinstance(context.case, OwnCase)
    machine = library.machine(name, task.problem, task.eps, int(context.case.options["cache_mb"]))
    dense = task.problem.train.dense()
    with context.recorder.span("solve", number):
        machine.fit(dense, task.problem.labels)
    return library.fitted(machine, task.problem)


def _meet(group: Collectives | None) -> None:
    if group is not None:
        group.barrier()


def _solve(context: RankContext, task: Task, number: int, machine: Machine, chosen: Heuristic) -> None:
    @contextmanager
    def timed(event: str, _: int) -> Iterator[None]:
        with context.recorder.span(event, number):
            yield

    machine.solve(chosen, task.eps, task.most, task.parts, timed)


def _compare(
    context: RankContext, task: Task, names: list[str], machines: dict[str, Machine | library.Fitted]
) -> dict[str, Found]:
    """Values of each variant, on rank 0. Predictions are compared with those without shrinking."""
    found = {name: _found(task, machines[name]) for name in names}
    base, curves = found.get(ORIGINAL), dict[str, dict[str, object]]()
    for number, name in enumerate(names):
        machine, values = machines[name], found[name]
        of = {"objective": values.objective, "violation": values.violation / task.eps, "accuracy": values.accuracy}
        if base is not None:
            of["agree"] = float(np.mean(values.predictions == base.predictions))
            of["from_original"] = float(np.abs(values.alpha - base.alpha).max())
        at_bound = np.count_nonzero(values.alpha >= task.problem.limit)
        of["support"] = float(np.count_nonzero(values.alpha))
        of["at_bound"] = at_bound / max(of["support"], 1.0)
        if isinstance(machine, Machine):
            curve = machine.curve
            of |= {
                "iterations": float(curve.iterations),
                "elements": task.messages.total(curve.elements),
                "reconstructed": task.messages.total(curve.reconstructed),
                "converged": float(curve.converged),
            }
            curves[name] = {"active": curve.active, "reconstructions": curve.reconstructions}
        if context.rank == 0:
            _record(context, number, of)
    context.facts["curves"] = curves
    context.facts["data"] = {"longest": task.messages.longest, "features": task.problem.train.features}
    return found


def _record(context: RankContext, number: int, values: dict[str, float]) -> None:
    moment = now()
    for event, value in values.items():
        context.recorder.add(event, number, moment, moment, value=value)


def _found(task: Task, machine: Machine | library.Fitted) -> Found:
    """gamma is computed anew for all samples, so that what a heuristic has dropped counts too."""
    whole, messages = task.problem, task.messages
    fitted = machine if isinstance(machine, library.Fitted) else None
    used = task.machine() if isinstance(machine, library.Fitted) else machine
    if fitted is not None:
        used.alpha[:] = fitted.alpha
    sums, _ = used.decision(used.rows, np.arange(len(used.rows)))
    tests = block(whole.test, messages.ranks, messages.rank)
    of_tests, _ = used.decision(tests, np.arange(len(tests)))
    used.gamma[:], used.count = sums - used.labels, len(used.rows)
    used.active = np.arange(used.count)
    up, low = messages.extremes(used.extremes())
    threshold = (up.value + low.value) / 2
    objective = messages.total(0.5 * float(used.alpha @ (used.labels * used.gamma - 1)))
    decisions = [messages.gathered(of - threshold, count) for of, count in
                 ((sums, messages.count), (of_tests, len(whole.test)))]  # fmt: skip
    ours = np.where(np.concatenate(decisions) > 0, 1.0, -1.0)
    predictions = ours if fitted is None else fitted.predictions
    accuracy = float(np.mean(predictions[messages.count :] == whole.test_labels))
    return Found(objective, low.value - up.value, accuracy, predictions, messages.gathered(used.alpha, messages.count))
