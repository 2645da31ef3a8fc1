"""What the cases of every program share. A case's id is the hash of its canonical JSON.

What every case has is flat; what belongs to a plugin is nested under it (`transport: {name: horovod, fusion_mib: 64}`).
`case.transport` is the plugin's name, `case.transport_options` its options, `case.plugin("transport")` its descriptor.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from typing import Annotated, Any, Literal, Self, TypeVar, overload

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    PositiveInt,
    model_validator,
)

from scaleproof.spec import registry
from scaleproof.spec.case_checks import check_common
from scaleproof.spec.choice import CHOSEN, choose, dotted, names_plugin, nested, short
from scaleproof.spec.compute import ComputeOptions
from scaleproof.spec.errors import FieldError
from scaleproof.spec.plugins import (
    CollectivePlugin,
    DatasetPlugin,
    FabricPlugin,
    FrameworkPlugin,
    Kind,
    LauncherPlugin,
    Options,
    Plugin,
    ProgramPlugin,
    StrategyPlugin,
    TransportPlugin,
    WorkloadOptions,
    WorkloadPlugin,
)

Chosen = TypeVar("Chosen", bound=Options)
NATIVE = "native"
"""The collective of a transport that has its own."""


def _chosen(kind: Kind) -> Any:
    return BeforeValidator(lambda value: None if value is None else choose(kind, value))


SHORT = PlainSerializer(short, return_type=Any)
Transport = Annotated[Options, _chosen("transport"), SHORT]
Collective = Annotated[Options, _chosen("collective"), SHORT]
Fabric = Annotated[Options, _chosen("fabric"), SHORT]
Launcher = Annotated[Options, _chosen("launcher"), SHORT]
Strategy = Annotated[Options, _chosen("strategy"), SHORT]
Workload = Annotated[WorkloadOptions, _chosen("workload"), SHORT]
Framework = Annotated[Options, _chosen("framework"), SHORT]


class CommonCase(BaseModel):
    """What every program's case has."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, serialize_by_alias=True, populate_by_name=False
    )

    suite: str
    experiment: str
    arm: str
    program: str = Field(description="What every rank runs (docs/programs.md).")
    ranks: PositiveInt = Field(description="Processes of a launch.")
    nodes: PositiveInt = Field(
        1,
        description="Nodes of the fabric; rank r runs on node r * nodes // ranks. Fabrics netns and simulated have one "
        "for each rank unless the case says otherwise.",
    )
    transport_options: Transport | None = Field(
        None, alias="transport", description="How bytes move; null for strategy local_only, which exchanges nothing."
    )
    collective_options: Collective = Field(
        Options(name=NATIVE),
        alias="collective",
        description="An algorithm over the transport's sends and receives, or native: the transport's own.",
    )
    fabric_options: Fabric = Field(
        Options(name="host"),
        alias="fabric",
        description="The network that the ranks run on (docs/netns.md, docs/guests.md, docs/simulator.md).",
    )
    launcher_options: Launcher = Field(Options(name="local"), alias="launcher", description="What starts the ranks.")
    interface: str = Field(
        "lo",
        description="The network interface that ranks bind; eth0 by default on fabrics guests, netns and simulated.",
    )
    dilation: float = Field(
        1.0,
        ge=1,
        description="Replayed compute and link delays last longer, and link rates are lower, by this factor; metrics "
        "divide times by it (docs/replay.md, `scaleproof dilate`).",
    )
    shrink: float = Field(
        1.0,
        ge=1,
        description="Tensors are smaller and link rates lower by this factor; metrics multiply bytes by it.",
    )
    buffers: Literal["registered", "plain"] = Field(
        "registered",
        description="What a rank communicates from and into: registered: the memory that its transport provides; "
        "plain: memory as NumPy and torch allocate it, for a transport that provides memory of its own (any other has "
        "plain memory only).",
    )
    threads_per_rank: PositiveInt = Field(1, description="Compute threads of each rank.")
    tracing: Literal["none", "full"] = Field(
        "none",
        description="full: every message of the engine is recorded too; such launches feed traces, never throughput.",
    )
    handicap: float = Field(
        0.0,
        ge=0,
        le=1,
        description="An injected slowdown: every timed sample lasts longer by this share of itself. Calibration uses "
        "it to check that a slowdown is detected.",
    )

    @property
    def transport(self) -> str | None:
        """The transport's name; None for a case that exchanges nothing."""
        return self.transport_options.name if self.transport_options else None

    @property
    def collective(self) -> str:
        """The algorithm's name, or `native`."""
        return self.collective_options.name

    @property
    def fabric(self) -> str:
        """The fabric's name."""
        return self.fabric_options.name

    @property
    def launcher(self) -> str:
        """The launcher's name."""
        return self.launcher_options.name

    @overload
    def plugin(self, kind: Literal["transport"]) -> TransportPlugin: ...
    @overload
    def plugin(self, kind: Literal["collective"]) -> CollectivePlugin: ...
    @overload
    def plugin(self, kind: Literal["fabric"]) -> FabricPlugin: ...
    @overload
    def plugin(self, kind: Literal["launcher"]) -> LauncherPlugin: ...
    @overload
    def plugin(self, kind: Literal["strategy"]) -> StrategyPlugin: ...
    @overload
    def plugin(self, kind: Literal["workload"]) -> WorkloadPlugin: ...
    @overload
    def plugin(self, kind: Literal["dataset"]) -> DatasetPlugin: ...
    @overload
    def plugin(self, kind: Literal["framework"]) -> FrameworkPlugin: ...
    @overload
    def plugin(self, kind: Literal["program"]) -> ProgramPlugin: ...
    @overload
    def plugin(self, kind: Kind) -> Plugin: ...
    def plugin(self, kind: Kind) -> Plugin:
        """The descriptor of the plugin that this case names; raises SpecError where it names none of this kind."""
        name = getattr(self, kind, None)
        return registry.get(kind, str(name))

    def named(self) -> list[tuple[Kind, str]]:
        """Kind and name of every plugin that this case names, its program first."""
        chosen = [(kind, getattr(self, kind, None)) for kind in CHOSEN]
        return [("program", self.program), *((kind, str(name)) for kind, name in chosen if name is not None)]

    def options_of(self, form: type[Chosen]) -> Chosen:
        """The options of the plugin that declares this form; raises TypeError where the case has another plugin."""
        for kind in CHOSEN:
            options = getattr(self, f"{kind}_options", None)
            if isinstance(options, form):
                return options
        raise TypeError(f"no plugin of this case has {form.__name__}")

    def value(self, key: str, default: Any = None) -> Any:
        """A field, or `KIND.OPTION` of a plugin, as `strategy.servers`, or an option of a suite's own program, as
        `options.policy`; `default` where this case has no such thing."""
        field, _, option = key.partition(".")
        if option and isinstance(own := getattr(self, field, None), Mapping):
            return own.get(option, default)
        if option:
            return getattr(getattr(self, f"{field}_options", None), option, default)
        return getattr(self, field, default)

    def flat(self) -> dict[str, Any]:
        """Every field, and every option that is not at its default under `KIND.OPTION`."""
        return dotted(self.model_dump(mode="json"))

    def complete(self) -> dict[str, Any]:
        """`flat`, with the options that are at their default too."""
        result = self.flat()
        for kind in (*CHOSEN, "compute"):
            options = getattr(self, f"{kind}_options", None)
            if options is not None:
                values = options.model_dump(mode="json", exclude={"name"})
                result |= {f"{kind}.{name}": value for name, value in values.items()}
        return result

    def changed(self, changes: Mapping[str, Any]) -> Any:
        """The same case with other values, options under `KIND.OPTION`, checked anew."""
        return type(self).model_validate(nested({**self.written(), **changes}))

    def written(self) -> dict[str, Any]:
        """What a suite would have to write: fields and options that are not at their default, as `flat` names them."""
        return dotted(self._not_at_default())

    def _not_at_default(self) -> dict[str, Any]:
        values, defaults = self.model_dump(mode="json"), _defaults(type(self))
        return {key: value for key, value in values.items() if key in _ALWAYS or value != defaults[key]}

    @model_validator(mode="before")
    @classmethod
    def _no_truth_values(cls, values: Any) -> Any:
        wrong = [name for name, value in values.items() if isinstance(value, bool)] if isinstance(values, dict) else []
        if wrong:  # pydantic takes them as the numbers 0 and 1
            raise FieldError(wrong[0], f"{str(values[wrong[0]]).lower()} is neither a number nor a name")
        return values

    @model_validator(mode="before")
    @classmethod
    def _defaults_of_fabric(cls, values: Any) -> Any:
        if not isinstance(values, dict) or "fabric" not in values:
            return values
        fabric = registry.get("fabric", choose("fabric", values["fabric"]).name)
        ranks = values.get("ranks", cls.model_fields["ranks"].get_default())
        nodes = {"nodes": ranks} if fabric.node_per_rank and isinstance(ranks, int) else {}
        return {"interface": fabric.interface, **nodes, **values}

    @model_validator(mode="after")
    def _plugins_fit(self) -> CommonCase:
        check_common(self)
        for kind, name in self.named():
            registry.get(kind, name).check(self)
        return self

    def canonical(self) -> str:
        """Canonical JSON: keys sorted, no spaces; the seed is no part of a case. Defaults are left out, so that a field
        or option that comes later keeps the identity of earlier cases: a default never changes its meaning."""
        return json.dumps(self._not_at_default(), sort_keys=True, separators=(",", ":"))

    @cached_property
    def case_id(self) -> str:
        """First 16 hex digits of the SHA-256 of the canonical JSON."""
        return hashlib.sha256(self.canonical().encode()).hexdigest()[:16]

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy, with other values and so another `case_id`."""
        copied = super().model_copy(update=update, deep=deep)
        copied.__dict__.pop("case_id", None)
        return copied


_ALWAYS = frozenset({"suite", "experiment", "arm", "program", "ranks"})


@cache
def _defaults(form: type[CommonCase]) -> dict[str, Any]:
    """Defaults of a form's fields as they are written in JSON."""
    values = {}
    for name, field in form.model_fields.items():
        default = field.get_default(call_default_factory=True)
        default = short(default) if isinstance(default, Options) else default
        values[field.alias or name] = list(default) if isinstance(default, tuple) else default
    return values


def form_keys(form: type[CommonCase]) -> list[str]:
    """The keys of a form's fields as suite files write them."""
    return [field.alias or name for name, field in form.model_fields.items()]


def known_keys(form: type[CommonCase]) -> Iterator[str]:
    """Every key of a form, with the options of all registered plugins as `KIND.OPTION`."""
    for key in form_keys(form):
        yield key
        if names_plugin(key):
            forms = {plugin.options for plugin in registry.plugins(key).values()}
            options = {name for options in forms for name in options.model_fields} - {"name"}
            yield from (f"{key}.{name}" for name in sorted(options))
        elif key == "compute":
            yield from (f"{key}.{name}" for name in ComputeOptions.model_fields if name != "name")
