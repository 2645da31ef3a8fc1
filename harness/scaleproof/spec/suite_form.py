"""The form of suite.yaml."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt

from scaleproof.spec.request import RequestForm

SIZES = ("ci", "smoke", "small", "full")
NO_VERDICTS = ("ci",)
"""Sizes that only test that everything runs."""
SizeName = Literal["ci", "smoke", "small", "full"]
CAMPAIGNS = {"small": 2}
"""Campaigns of a size that does not say how many; of other sizes 1."""
Fields = dict[str, Any]
OnNodeLoss = Literal["continue", "stop"]
"""When a node of an allocation is lost: go on with the launches that the nodes left can hold, or end the run."""


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class MatrixForm(_Form):
    """A product of sweeps over some arms."""

    arms: Annotated[list[str], Field(min_length=1)] = Field(description="Names of arms.")
    sweep: dict[str, Annotated[list[Any], Field(min_length=1)]] = Field(
        {},
        description="Values of a field of the case, each a case of its own. A value that is a mapping sets several "
        "fields; its key is a label.",
    )
    set: Fields = Field({}, description="Fields of a case over those of the arm.")


class StopForm(_Form):
    """Launches go on until the interval of a metric's median is within `target` (a share of it), at most `budget` of a
    case. Without a metric, until that holds for the number of every claim of the experiment."""

    metric: str | None = Field(
        None,
        description="The metric whose interval decides (docs/metrics); null: the numbers of the claims, ratios paired "
        "by block.",
    )
    nbytes: Any = Field(None, description="Message size, for a metric per message size.")
    target: float = Field(0.05, gt=0, lt=1, description="Largest half width of the interval, as a share of the median.")
    budget: int = Field(ge=1, le=1000, description="Most launches of a case.")
    minutes: PositiveFloat | None = Field(
        None, description="Without a metric: most minutes that the launches of one claim take together."
    )


class SizeForm(_Form):
    """What one size runs: `launches` repetitions of each case of the matrix; with `stop` that is the least number."""

    launches: PositiveInt = Field(
        le=1000, description="Repetitions of every case, in fresh processes; with `stop` the minimum."
    )
    campaigns: Annotated[int, Field(ge=1, le=100)] | None = Field(
        None,
        description="Calls of `scaleproof run` that make these launches, each call all of them (docs/measuring.md); "
        "null: 2 at size small, else 1.",
    )
    stop: StopForm | None = Field(None, description="Adds launches until the intervals are narrow enough.")
    allocation: RequestForm = Field(RequestForm(), description="What this size requests from a cluster.")
    deadline_s: PositiveFloat | None = Field(None, description="The experiment's `deadline_s`, for this size.")
    stall_s: PositiveFloat | None = Field(None, description="The experiment's `stall_s`, for this size.")
    set: Fields = Field({}, description="Fields of a case over those of the experiment's base.")
    matrix: Annotated[list[MatrixForm], Field(min_length=1)] = Field(
        description="Rows of arms and sweeps: the union of their products is run."
    )


Values = Annotated[list[Any], Field(min_length=1)]
"""Of a field of the case."""


class TuneForm(_Form):
    """Fields of a case that `scaleproof tune` tunes for every arm with the same budget (docs/tuning.md)."""

    grid: Annotated[dict[str, Values], Field(min_length=1)] = Field(
        description="Values of fields of the case: every arm is run at each point of their product."
    )
    metric: str = Field(description="Metric of a launch: the point with the best median is chosen.")
    launches: PositiveInt = Field(le=100, description="Launches of each point, with seeds of their own.")
    by: list[str] = Field(
        [], description="Fields of the case: an arm is tuned for each combination of their values by itself."
    )
    set: Fields = Field({}, description="Fields of a case over all others while it is tuned.")
    arms: dict[str, Annotated[dict[str, Values], Field(min_length=1)]] = Field(
        {}, description="Grids of arms with options of their own, each of as many points as `grid`."
    )
    fixed: list[str] = Field([], description="Arms that are not tuned and keep their own fields.")


class ExperimentForm(_Form):
    """Arms that are compared, over a base, at each size."""

    summary: str = Field(description="One line for `scaleproof list`.")
    deadline_s: PositiveFloat = Field(
        120.0,
        description="A launch that has not ended after so many seconds has failed; a prediction (fabric `simulated`) "
        "may take longer.",
    )
    stall_s: PositiveFloat | None = Field(
        None,
        description="A launch in which no rank makes progress for so many seconds has failed (docs/watchdog.md); "
        "null: 30.",
    )
    allocation: RequestForm = Field(
        RequestForm(), description="What the experiment requests from a cluster (docs/clusters.md)."
    )
    timed: bool = Field(
        True,
        description="false: no claim reads its clocks. Its launches are forked from one process, and where ranks do "
        "not share the machine's interfaces, `snakemake` runs it beside another such experiment (docs/measuring.md).",
    )
    on_node_loss: OnNodeLoss = Field(
        "continue",
        description="When a node of an allocation is lost: go on with the launches that the other nodes can hold, or "
        "end the run.",
    )
    reference_minutes: PositiveFloat | None = Field(
        None,
        description="Minutes of the reference run that the experiment may take on top of its suite's, which is older.",
    )
    tune: TuneForm | None = Field(
        None, description="What is tuned for each arm, and stands in the suite's tuned.yaml; null: nothing."
    )
    base: Fields = Field(description="Fields of a case that all arms share.")
    arms: Annotated[dict[str, Fields], Field(min_length=1)] = Field(
        description="What is compared: fields of a case by the arm's name."
    )
    sizes: Annotated[dict[SizeName, SizeForm], Field(min_length=1)] = Field(description="What each size runs.")


class SuiteForm(_Form):
    """The whole file."""

    suite: str = Field(description="The suite's name: that of its folder.")
    title: str = Field(description="Heading of its page.")
    summary: str = Field("", description="What the suite shows, below the heading.")
    reference_minutes: PositiveFloat | None = Field(
        None, description="Minutes of the reference run (size smoke, two quiet cores) that the suite may take."
    )
    experiments: Annotated[dict[str, ExperimentForm], Field(min_length=1)] = Field(description="By name.")
