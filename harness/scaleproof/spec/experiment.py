"""From an experiment's base, arms and sweeps to its cases: one configuration each, every field traced to its line."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from scaleproof.spec import earlier_form, registry
from scaleproof.spec.case import CHOSEN, AnyCase, CommonCase, known_keys, parse_case
from scaleproof.spec.cluster import cluster_of
from scaleproof.spec.errors import FieldError, SpecError
from scaleproof.spec.locate import Document, Key
from scaleproof.spec.messages import field_of, options_of, phrase
from scaleproof.spec.programs import programs_digest, programs_folder
from scaleproof.spec.request import Request, RequestForm, request
from scaleproof.spec.units import parse_bytes

if TYPE_CHECKING:
    from scaleproof.spec.suite import ExperimentForm, MatrixForm, SizeForm

Origins = dict[str, Key]

_OURS = ("suite", "experiment", "arm", "source")
_BYTES = ("sizes",)
NESTED = (*CHOSEN, "compute")
"""Fields that may be a mapping with options of their own."""


@dataclass(frozen=True)
class Stop:
    """When launches are enough: the interval of the metric's median is within `target` of it, or `budget` launches of a
    case were made."""

    metric: str
    nbytes: int | None
    """Message size, for metrics per size."""
    target: float
    budget: int


@dataclass(frozen=True)
class Size:
    """One size of an experiment: its cases, each launched `launches` times (at least, with `stop`), each launch with a
    deadline in seconds."""

    name: str
    launches: int
    deadline_s: float
    cases: tuple[AnyCase, ...]
    stop: Stop | None = None
    stall_s: float | None = None
    allocation: RequestForm = field(default_factory=RequestForm)

    @property
    def request(self) -> Request:
        """What it asks a cluster for."""
        return request(self.allocation, self.cases, self.stop.budget if self.stop else self.launches, self.deadline_s)


@dataclass(frozen=True)
class Experiment:
    """A named matrix of cases at several sizes."""

    name: str
    summary: str
    arms: tuple[str, ...]
    sizes: dict[str, Size]
    on_node_loss: str = "continue"

    def size(self, name: str) -> Size:
        """By name; raises SpecError with the sizes that there are."""
        if name not in self.sizes:
            raise SpecError(
                f"experiment {self.name!r} has no size {name!r}; {registry.nearest(name, list(self.sizes))}"
            )
        return self.sizes[name]


class _Layers:
    """Fields laid over each other, each with the path it came from and the number of its layer. Options of a plugin are
    held under `KIND.OPTION`."""

    def __init__(self, document: Document) -> None:
        self.document, self.values, self.origins = document, dict[str, Any](), Origins()
        self.layer: dict[str, int] = {}
        self.height = 0

    def over(self, fields: dict[str, Any], path: Key) -> _Layers:
        """A copy with these fields on top; raises SpecError for a key that no program and no plugin knows."""
        result = _Layers(self.document)
        laid, places = self._laid(fields, path)
        result.height = self.height + 1
        result.values, result.origins = {**self.values, **laid}, {**self.origins, **places}
        result.layer = {**self.layer, **dict.fromkeys(laid, result.height)}
        return result

    def _laid(self, fields: dict[str, Any], path: Key) -> tuple[dict[str, Any], Origins]:
        """Mappings of a plugin's options as dotted keys, and where each key stands."""
        laid: dict[str, Any] = {}
        places: Origins = {}
        for name, value in fields.items():
            if name in _OURS:
                raise self.document.error((*path, name), "set by the harness; leave it out")
            if name in NESTED and isinstance(value, dict):
                self._known_plugin(name, value.get("name"), (*path, name, "name"))
                for option, chosen in value.items():
                    key = name if option == "name" else f"{name}.{option}"
                    laid[key], places[key] = chosen, (*path, name, option)
            else:
                laid[name], places[name] = value, (*path, name)
        for key, place in places.items():
            self._known_key(key, place)
        return laid, places

    def _known_plugin(self, field: str, name: object, place: Key) -> None:
        """Before its options, which nobody else knows."""
        if field in CHOSEN and isinstance(name, str) and name not in (known := registry.plugins(field)):  # type: ignore[arg-type]
            raise self.document.error(place, f"unknown {field} {name!r}; {registry.nearest(name, list(known))}")

    def _known_key(self, key: str, place: Key) -> None:
        if key in every_key():
            return
        if advice := earlier_form.advice(key):
            raise self.document.error(place, f"{key!r} {advice}")
        raise self.document.error(place, f"unknown key; {self._nearest(key)}")

    def _nearest(self, key: str) -> str:
        """Advice for a misspelt key, also for an option that was written without its field."""
        known = self.known()
        close = difflib.get_close_matches(key, [*known, *(name.rpartition(".")[2] for name in known)], n=1, cutoff=0.5)
        whole = next((name for name in known if close and name.rpartition(".")[2] == close[0]), None)
        return f"did you mean {whole or close[0]!r}?" if close else registry.nearest(key, known)

    def resolved(self) -> dict[str, Any]:
        """Values in which an option that was laid below its plugin's name stays only where that plugin has it."""
        values = dict(self.values)
        for key in self.values:
            field, _, option = key.partition(".")
            if option and field in CHOSEN and self._left_behind(field, option, self.layer[key]):
                del values[key]
        return values

    def _left_behind(self, field: str, option: str, layer: int) -> bool:
        if self.layer.get(field, 0) <= layer:
            return False
        name = self.values[field]
        if not isinstance(name, str) or name not in registry.plugins(field):  # type: ignore[arg-type]
            return name is None
        return option not in registry.get(field, name).options.model_fields  # type: ignore[call-overload, no-any-return]

    def origin(self, field: str, otherwise: Key) -> Key:
        """Where a field, or the plugin whose option it is, was written."""
        return self.origins.get(field) or self.origins.get(field.partition(".")[0], otherwise)

    def known(self) -> list[str]:
        """The keys that the program here takes, or that any takes while none is named."""
        program = self.values.get("program")
        forms = case_forms()
        chosen = [forms[program]] if isinstance(program, str) and program in forms else list(forms.values())
        return [key for key in dict.fromkeys(key for form in chosen for key in known_keys(form)) if key not in _OURS]


def case_forms() -> dict[str, type[CommonCase]]:
    """The form of every program's cases."""
    return {name: plugin.case for name, plugin in registry.plugins("program").items()}  # type: ignore[attr-defined]


@cache
def every_key() -> frozenset[str]:
    return frozenset(key for form in case_forms().values() for key in known_keys(form))


def resolve_experiment(document: Document, suite: str, name: str, form: ExperimentForm) -> Experiment:
    """All sizes of an experiment; raises SpecError for the first thing wrong."""
    path: Key = ("experiments", name)
    base = _Layers(document).over(form.base, (*path, "base"))
    for arm, fields in form.arms.items():
        base.over(fields, (*path, "arms", arm))
    sizes: dict[str, Size] = {}
    for size, found in form.sizes.items():
        cases = _resolve_size(base, (suite, name), path, form, found, (*path, "sizes", size))
        stop = _resolve_stop(document, found, (*path, "sizes", size, "stop"))
        deadline_s, stall_s = found.deadline_s or form.deadline_s, found.stall_s or form.stall_s
        sizes[size] = Size(
            size, found.launches, deadline_s, cases, stop, stall_s, found.allocation.over(form.allocation)
        )
    return Experiment(name, form.summary, tuple(form.arms), sizes, form.on_node_loss)


def _resolve_stop(document: Document, form: SizeForm, path: Key) -> Stop | None:
    """The metric's name is checked where metrics are known, before the first launch."""
    found = form.stop
    if found is None:
        return None
    if found.budget < form.launches:
        raise document.error(
            (*path, "budget"),
            f"{found.budget} is less than 'launches', {form.launches}: the budget counts all launches of a case",
        )
    nbytes = None if found.nbytes is None else int(str(_nbytes(document, (*path, "nbytes"), found.nbytes)))
    return Stop(found.metric, nbytes, found.target, found.budget)


def _resolve_size(
    base: _Layers, names: tuple[str, str], path: Key, form: ExperimentForm, size: SizeForm, size_path: Key
) -> tuple[AnyCase, ...]:
    document, seen = base.document, dict[str, tuple[AnyCase, Key]]()
    sized = base.over(size.set, (*size_path, "set"))
    for index, row in enumerate(size.matrix):
        row_path = (*size_path, "matrix", index)
        for place, arm in enumerate(row.arms):
            if arm not in form.arms:
                raise document.error(
                    (*row_path, "arms", place), f"unknown arm {arm!r}; {registry.nearest(arm, list(form.arms))}"
                )
            armed = sized.over(form.arms[arm], (*path, "arms", arm)).over(row.set, (*row_path, "set"))
            for layers in _sweep(armed, row, row_path):
                case = _case(layers, names, arm, row_path)
                if case.case_id in seen:
                    raise document.error(
                        row_path,
                        f"the same case twice, in arm {arm!r}: {dict(_swept(case, row))}; "
                        f"first in {_short(seen[case.case_id][1])}",
                    )
                seen[case.case_id] = case, row_path
    return tuple(case for case, _ in seen.values())


def _sweep(armed: _Layers, row: MatrixForm, row_path: Key) -> Iterator[_Layers]:
    """The product of a row's sweeps, the last one fastest."""
    choices = [[(key, place, value) for place, value in enumerate(values)] for key, values in row.sweep.items()]
    for combination in itertools.product(*choices):
        layers = armed
        for key, place, value in combination:
            item = (*row_path, "sweep", key, place)
            if isinstance(value, dict):
                layers = layers.over(value, item)
            else:
                layers = layers.over({key: value}, (*row_path, "sweep"))
                layers.origins[key] = item
        yield layers


def _case(layers: _Layers, names: tuple[str, str], arm: str, row_path: Key) -> AnyCase:
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
            values[name] = [_nbytes(document, (*origins[name], place), size) for place, size in enumerate(values[name])]
    if program == "own":
        values["source"] = _source(layers, row_path)
    try:
        case = parse_case(values)
    except ValidationError as failed:
        raise _wrong_case(layers, failed, program, row_path) from None
    except FieldError as wrong:
        raise document.error(layers.origin(wrong.field, row_path), str(wrong)) from None
    return _checked(layers, case, row_path)


def _source(layers: _Layers, row_path: Key) -> str:
    """Digest of the suite's own programs; raises SpecError when the entry is not among them."""
    entry = layers.values.get("entry")
    folder = programs_folder(layers.document.file.parent)
    known = sorted(path.stem for path in folder.glob("[a-z]*.py"))
    if isinstance(entry, str) and entry not in known:
        advice = registry.nearest(entry, known) if known else f"{folder.name}/ holds none"
        raise layers.document.error(
            layers.origins.get("entry", row_path), f"unknown program {entry!r} of this suite; {advice}"
        )
    return programs_digest(folder)


def _wrong_case(layers: _Layers, failed: ValidationError, program: str, row_path: Key) -> SpecError:
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
        return document.error(path, f"program {program!r} has no such key; {registry.nearest(field, layers.known())}")
    inner = tuple(part for part in loc[1:] if isinstance(part, int))
    return document.error(
        (*path, *inner), phrase({**error, "loc": loc}, layers.known(), options_of(case_forms()[program], field))
    )


def _checked(layers: _Layers, case: AnyCase, row_path: Key) -> AnyCase:
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
