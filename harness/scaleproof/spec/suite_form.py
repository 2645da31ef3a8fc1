"""The form of suite.yaml."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt

from scaleproof.spec.request import RequestForm

SIZES = ("ci", "smoke", "small", "full")
SizeName = Literal["ci", "smoke", "small", "full"]
Fields = dict[str, Any]
OnNodeLoss = Literal["continue", "stop"]
"""When a node of an allocation is lost: go on with the launches that the nodes left can hold, or end the run."""


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class MatrixForm(_Form):
    """A product of sweeps over some arms."""

    arms: Annotated[list[str], Field(min_length=1)]
    sweep: dict[str, Annotated[list[Any], Field(min_length=1)]] = {}
    set: Fields = {}


class StopForm(_Form):
    """Launches go on until the interval of a metric's median is within `target` (a share of it), at most `budget` of a
    case."""

    metric: str
    nbytes: Any = None
    target: Annotated[float, Field(gt=0, lt=1)] = 0.05
    budget: Annotated[int, Field(ge=1, le=1000)]


class SizeForm(_Form):
    """What one size runs: `launches` repetitions of each case of the matrix; with `stop` that is the least number."""

    launches: PositiveInt
    stop: StopForm | None = None
    allocation: RequestForm = RequestForm()
    deadline_s: PositiveFloat | None = None
    stall_s: PositiveFloat | None = None
    set: Fields = {}
    matrix: Annotated[list[MatrixForm], Field(min_length=1)]


class ExperimentForm(_Form):
    """Arms that are compared, over a base, at each size."""

    summary: str
    deadline_s: PositiveFloat = 120.0
    stall_s: PositiveFloat | None = None
    allocation: RequestForm = RequestForm()
    on_node_loss: OnNodeLoss = "continue"
    base: Fields
    arms: Annotated[dict[str, Fields], Field(min_length=1)]
    sizes: Annotated[dict[SizeName, SizeForm], Field(min_length=1)]


class SuiteForm(_Form):
    """The whole file."""

    suite: str
    title: str
    summary: str = ""
    experiments: Annotated[dict[str, ExperimentForm], Field(min_length=1)]


FORM_AT_DEPTH: dict[int, type[BaseModel]] = {1: SuiteForm, 3: ExperimentForm, 5: SizeForm, 6: StopForm, 7: MatrixForm}
"""Which form stands at which depth of the file: its keys are the candidates for a misspelt one."""
