"""Stated costs: a YAML file for each transport, with ranges by class of hops and where each comes from
(docs/costs.md)."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, NonNegativeFloat, PositiveFloat, ValidationError

from scaleproof.simulate.hop_classes import Hop
from scaleproof.spec.locate import read_document
from scaleproof.spec.messages import form_error


def _ordered(values: list[float]) -> list[float]:
    value, low, high = values
    if not low <= value <= high or low == high:
        raise ValueError("write [value, low, high] with low at most value, value at most high, and low below high")
    return values


REFERENCE = Path(__file__).with_name("reference_core.yaml")
Range = Annotated[list[NonNegativeFloat], Field(min_length=3, max_length=3), AfterValidator(_ordered)]
"""[value, low, high]; the interval is a 95 % range, and never empty."""


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Core(_Form):
    """The core on which the costs were fitted: those of software are scaled by the ratio of its speed to that of a
    node's core, which is the ratio of clocks times `per_clock`."""

    ghz: PositiveFloat
    per_clock: Range
    source: str


class Side(_Form):
    """Time of a core that a message takes on one side: `message` in s a message, `byte` in s a byte."""

    message: Range
    byte: Range


class HopForm(_Form):
    """Costs on a class of hops. `alpha`: s a message; `beta`: s a byte that the software needs (a link's own rate comes
    from the cluster); `card`: s a message that a network card adds, whatever the core; `send` and `receive`: time of a
    core. `like`: everything that is not said here is as on that class."""

    source: str
    like: Hop | None = None
    alpha: Range | None = None
    beta: Range | None = None
    card: Range | None = None
    send: Side | None = None
    receive: Side | None = None


class Gamma(_Form):
    """s a byte that is reduced, and who reduces it: transports that have it in common are drawn alike."""

    by: str
    s_per_byte: Range
    source: str


class CallForm(_Form):
    """s that a collective call takes of each rank beside its messages."""

    s: Range
    source: str


class Stated(NamedTuple):
    """A range, or what a message takes on one side, and the class of hops where it stands."""

    cost: Any
    hop: Hop


class Sheet(_Form):
    """Costs of a transport. `goodput`: share of a link's rate that is payload. `core`: where the costs of software were
    fitted, if the ratio of cores is to scale them; `reference`: see reference_core.yaml. `call`: None, nothing is known
    of it. `one_run`: what differs for a message among many that one run of a session sends, as tensors to and from
    parameter servers."""

    summary: str
    goodput: Annotated[float, Field(gt=0, le=1)]
    gamma: Gamma
    core: Core | Literal["reference"] | None = None
    hops: Annotated[dict[Hop, HopForm], Field(min_length=1)]
    call: CallForm | None = None
    one_run: dict[Hop, HopForm] = {}

    def of_one_run(self) -> Sheet:
        """With the costs of a message among many of one run."""
        hops = dict(self.hops)
        for hop, form in self.one_run.items():
            hops[hop] = hops[hop].model_copy(update={name: getattr(form, name) for name in form.model_fields_set})
        return self.model_copy(update={"hops": hops})

    def stated(self, hop: Hop, cost: str) -> Stated:
        """A cost on a class of hops."""
        form = self.hops[hop]
        if getattr(form, cost) is None and form.like is not None:
            return Stated(getattr(self.hops[form.like], cost), form.like)
        return Stated(getattr(form, cost), hop)


def read_sheet(file: Path, needed: tuple[Hop, ...] = ()) -> Sheet:
    """A transport's stated costs. Raises SpecError, in one line, for what the form refuses and for a class of hops that
    is needed and missing."""
    return _read(file.absolute(), needed, file.stat().st_mtime_ns if file.exists() else 0)


@lru_cache
def _read(file: Path, needed: tuple[Hop, ...], modified_ns: int) -> Sheet:
    document = read_document(file)
    try:
        sheet = Sheet.model_validate(document.data)
    except ValidationError as failed:
        raise form_error(document, (), Sheet, failed) from None
    for hop in needed:
        if hop not in sheet.hops:
            raise document.error(("hops",), f"costs on hops of class {hop!r} are missing")
    for hop in sheet.one_run:
        if hop not in sheet.hops:
            raise document.error(("one_run", hop), f"{hop!r} is no class in `hops` of this file")
    for hop, form in sheet.hops.items():
        if form.like is not None and (form.like not in sheet.hops or sheet.hops[form.like].like is not None):
            raise document.error(("hops", hop, "like"), f"{form.like!r} has no costs of its own in this file")
        for cost in ("alpha", "beta", "send", "receive"):
            if sheet.stated(hop, cost).cost is None:
                raise document.error(("hops", hop), f"{cost} is missing")
    return sheet.model_copy(update={"core": _reference()}) if sheet.core == "reference" else sheet


def _reference() -> Core:
    return Core.model_validate(read_document(REFERENCE).data)
