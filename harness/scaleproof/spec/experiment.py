"""From an experiment's base, arms and sweeps to its cases: one configuration each, every field traced to its line."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pydantic import ValidationError

from scaleproof.spec import registry
from scaleproof.spec.case import AnyCase, parse_case
from scaleproof.spec.case_layers import CaseLayers, case_forms
from scaleproof.spec.cluster import cluster_of
from scaleproof.spec.errors import FieldError, SpecError
from scaleproof.spec.locate import Document, Key
from scaleproof.spec.messages import field_of, options_of, phrase
from scaleproof.spec.request import Request, RequestForm, request
from scaleproof.spec.suite_form import CAMPAIGNS, ExperimentForm, MatrixForm, SizeForm, TuneForm
from scaleproof.spec.tuned import Chosen
from scaleproof.spec.units import parse_bytes

_BYTES = ("sizes",)
"""Fields that suite files write as sizes with a unit."""


@dataclass(frozen=True)
class Stop:
    """When launches are enough: the interval of the metric's median is within `target` of it, or `budget` launches of a
    case were made. Without a metric the numbers of the experiment's claims decide, each at most `minutes` long."""

    metric: str | None
    nbytes: int | None
    """Message size, for metrics per size."""
    target: float
    budget: int
    place: str
    """File, line and key of the metric."""
    minutes: float | None = None
    """Wall time of the launches of one claim."""


@dataclass(frozen=True)
class Size:
    """One size of an experiment: its cases, each launched `launches` times (at least, with `stop`) in each of
    `campaigns`, each launch with a deadline in seconds."""

    name: str
    launches: int
    deadline_s: float
    cases: tuple[AnyCase, ...]
    stop: Stop | None = None
    stall_s: float | None = None
    allocation: RequestForm = field(default_factory=RequestForm)
    campaigns: int = 1

    @property
    def most_launches(self) -> int:
        """Of a case in one campaign."""
        return self.stop.budget if self.stop else self.launches

    @property
    def request(self) -> Request:
        """What it asks a cluster for."""
        return request(self.allocation, self.cases, self.most_launches, self.deadline_s)


@dataclass(frozen=True)
class Experiment:
    """A named matrix of cases at several sizes."""

    name: str
    summary: str
    arms: tuple[str, ...]
    sizes: dict[str, Size]
    on_node_loss: str = "continue"
    timed: bool = True
    """Whether a claim may read the clocks of its launches."""
    tune: TuneForm | None = None

    def size(self, name: str) -> Size:
        """By name; raises SpecError with the sizes that there are."""
        if name not in self.sizes:
            raise SpecError(
                f"experiment {self.name!r} has no size {name!r}; {registry.nearest(name, list(self.sizes))}"
            )
        return self.sizes[name]

    def runs_alone(self, size: str) -> bool:
        """Whether its launches at a size need the machine to themselves; predictions do not, nor do launches of which
        no clock is read where each has interfaces of its own: the machine's would count other launches' bytes too."""
        cases = self.size(size).cases
        return not _all_predicted(cases) and (self.timed or any(map(_shares_interfaces, cases)))

    def clocks_count(self, case: AnyCase) -> bool:
        """Whether times of a launch of this case say something: nothing ran beside it, or its time is virtual."""
        return self.timed or case.plugin("fabric").predicted


def resolve_experiment(
    document: Document, suite: str, name: str, form: ExperimentForm, tuned: Chosen | None = None
) -> Experiment:
    """All sizes of an experiment; raises SpecError for the first thing wrong. `tuned`: where it has `tune`."""
    path: Key = ("experiments", name)
    base = CaseLayers(document).over(form.base, (*path, "base"))
    for arm, fields in form.arms.items():
        base.over(fields, (*path, "arms", arm))
    sizes: dict[str, Size] = {}
    for size, size_form in form.sizes.items():
        cases = _resolve_size(base, (suite, name), path, form, size, tuned)
        stop = _resolve_stop(document, size_form, (*path, "sizes", size, "stop"))
        deadline_s, stall_s = size_form.deadline_s or form.deadline_s, size_form.stall_s or form.stall_s
        allocation = size_form.allocation.over(form.allocation)
        campaigns = _campaigns(size, size_form, cases)
        sizes[size] = Size(size, size_form.launches, deadline_s, cases, stop, stall_s, allocation, campaigns)
    return Experiment(name, form.summary, tuple(form.arms), sizes, form.on_node_loss, form.timed, form.tune)


def _shares_interfaces(case: AnyCase) -> bool:
    """Whether several ranks send over this machine's own interfaces."""
    sends = case.ranks > 1 and case.plugin("fabric").existing_network
    return sends and not (case.transport and case.plugin("transport").within_node == "memory")


def _all_predicted(cases: Sequence[AnyCase]) -> bool:
    return all(case.plugin("fabric").predicted for case in cases)


def _campaigns(size: str, form: SizeForm, cases: Sequence[AnyCase]) -> int:
    """One where all cases are predicted: the simulator gives the same values every time."""
    if _all_predicted(cases):
        return 1
    return form.campaigns or CAMPAIGNS.get(size, 1)


def _resolve_stop(document: Document, form: SizeForm, path: Key) -> Stop | None:
    """The metric's name is checked where metrics are known, before the first launch."""
    stop = form.stop
    if stop is None:
        return None
    if stop.budget < form.launches:
        raise document.error(
            (*path, "budget"),
            f"{stop.budget} is less than 'launches', {form.launches}: the budget counts all launches of a case",
        )
    nbytes = None if stop.nbytes is None else int(str(_nbytes(document, (*path, "nbytes"), stop.nbytes)))
    if stop.metric is None and nbytes is not None:
        raise document.error((*path, "nbytes"), "claims bring their own message sizes: leave it out, or give 'metric'")
    if stop.metric is not None and stop.minutes is not None:
        raise document.error((*path, "minutes"), "counts the launches of a claim: leave it out, or leave out 'metric'")
    return Stop(stop.metric, nbytes, stop.target, stop.budget, document.place((*path, "metric")), stop.minutes)


def _resolve_size(
    base: CaseLayers, names: tuple[str, str], path: Key, form: ExperimentForm, size: str, tuned: Chosen | None
) -> tuple[AnyCase, ...]:
    document, resolved = base.document, dict[str, tuple[AnyCase, Key]]()
    for arm, row, row_path, layers, height in swept(base, path, form, size):
        if tuned is not None:
            layers = tuned.over_arm(layers, arm, size, height)
        case = resolved_case(layers, names, arm, row_path)
        if case.case_id in resolved:
            raise document.error(
                row_path,
                f"the same case twice, in arm {arm!r}: {dict(_swept(case, row))}; "
                f"first in {_short(resolved[case.case_id][1])}",
            )
        resolved[case.case_id] = case, row_path
    return tuple(case for case, _ in resolved.values())


class SweptLayers(NamedTuple):
    """The fields of one case of a size."""

    arm: str
    row: MatrixForm
    row_path: Key
    layers: CaseLayers
    height: int
    """Of the arm's layer."""


def swept(base: CaseLayers, path: Key, form: ExperimentForm, size: str) -> Iterator[SweptLayers]:
    """The cases of a size, in the order of its matrix. `path`: of the experiment."""
    size_form, size_path = form.sizes[size], (*path, "sizes", size)  # type: ignore[index]
    sized = base.over(size_form.set, (*size_path, "set"))
    for index, row in enumerate(size_form.matrix):
        row_path: Key = (*size_path, "matrix", index)
        for position, arm in enumerate(row.arms):
            if arm not in form.arms:
                raise base.document.error(
                    (*row_path, "arms", position), f"unknown arm {arm!r}; {registry.nearest(arm, list(form.arms))}"
                )
            armed = sized.over(form.arms[arm], (*path, "arms", arm))
            for layers in _sweep(armed.over(row.set, (*row_path, "set")), row, row_path):
                yield SweptLayers(arm, row, row_path, layers, armed.height)


def _sweep(armed: CaseLayers, row: MatrixForm, row_path: Key) -> Iterator[CaseLayers]:
    """The product of a row's sweeps, the last one fastest."""
    choices = [[(key, index, value) for index, value in enumerate(values)] for key, values in row.sweep.items()]
    for combination in itertools.product(*choices):
        layers = armed
        for key, index, value in combination:
            item = (*row_path, "sweep", key, index)
            if isinstance(value, dict):
                layers = layers.over(value, item)
            else:
                layers = layers.over({key: value}, (*row_path, "sweep"))
                layers.origins[key] = item
        yield layers


def resolved_case(layers: CaseLayers, names: tuple[str, str], arm: str, row_path: Key) -> AnyCase:
    """The case of all layers, of a suite, experiment and arm; SpecError with the line of what is wrong."""
    document, origins = layers.document, layers.origins
    values = {**layers.resolved(), "suite": names[0], "experiment": names[1], "arm": arm}
    program = values.get("program")
    if program is None:
        raise document.error(("experiments", names[1], "base"), f"program: missing; known: {', '.join(case_forms())}")
    if not isinstance(program, str) or program not in case_forms():
        raise document.error(
            origins["program"], f"unknown program {program!r}; {registry.nearest(str(program), list(case_forms()))}"
        )
    for name in _BYTES:
        if isinstance(values.get(name), list):
            values[name] = [_nbytes(document, (*origins[name], index), size) for index, size in enumerate(values[name])]
    if program == "own":
        values["source"] = _source(layers, row_path)
    try:
        case = parse_case(values)
    except ValidationError as failed:
        raise _wrong_case(layers, failed, program, row_path) from None
    except FieldError as wrong:
        raise document.error(layers.origin(wrong.field, row_path), str(wrong)) from None
    return _checked(layers, case, row_path)


def _source(layers: CaseLayers, row_path: Key) -> str:
    """Digest of the suite's own programs; raises SpecError when the entry is not among them."""
    entry = layers.values.get("entry")
    entries, digest = layers.document.programs
    if isinstance(entry, str) and entry not in entries:
        advice = registry.nearest(entry, entries) if entries else "programs/ holds none"
        raise layers.document.error(
            layers.origins.get("entry", row_path), f"unknown program {entry!r} of this suite; {advice}"
        )
    return digest


def _wrong_case(layers: CaseLayers, failed: ValidationError, program: str, row_path: Key) -> SpecError:
    """The first error of a case, at the line that its field came from."""
    document = layers.document
    error = failed.errors(include_url=False)[0]
    loc = error["loc"]
    field = field_of(error) or (str(loc[0]) if loc else "")
    if error["type"] == "missing":
        return document.error(
            row_path, f"program {program!r} needs {field!r}; set it in base, an arm, 'set' or 'sweep'"
        )
    path = layers.origin(field, row_path)
    if error["type"] == "extra_forbidden":
        return document.error(path, f"program {program!r} has no such key; {registry.nearest(field, layers.keys())}")
    inner = tuple(part for part in loc[1:] if isinstance(part, int))
    return document.error(
        (*path, *inner), phrase({**error, "loc": loc}, layers.keys(), options_of(case_forms()[program], field))
    )


def _checked(layers: CaseLayers, case: AnyCase, row_path: Key) -> AnyCase:
    """What only others know: whether the cluster's description fits, and whether the workload's network can be reduced
    like that."""
    try:
        cluster_of(case)
    except SpecError as wrong:
        raise layers.document.error(layers.origins.get("fabric.cluster", row_path), f"cluster: {wrong}") from None
    try:
        case.plugin("program").check_resolved(case)
    except SpecError as wrong:
        field = wrong.field if isinstance(wrong, FieldError) else "workload"
        raise layers.document.error(layers.origin(field, row_path), str(wrong)) from None
    return case


def _nbytes(document: Document, path: Key, size: object) -> object:
    try:
        return parse_bytes(size)
    except ValueError as wrong:
        raise document.error(path, str(wrong)) from None


def _swept(case: AnyCase, row: MatrixForm) -> Iterator[tuple[str, Any]]:
    for key in row.sweep:
        if case.value(key) is not None:
            yield key, case.value(key)


def _short(path: Key) -> str:
    return f"{path[-2]}[{path[-1]}]"
