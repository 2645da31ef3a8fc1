"""The cases of each program: transfer, collective, train, and a suite's own."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    Field,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    ValidationInfo,
    field_validator,
    model_validator,
)

from scaleproof.spec import registry
from scaleproof.spec.case_checks import check_training, check_transfer
from scaleproof.spec.choice import nested
from scaleproof.spec.common_case import SHORT, CommonCase, Framework, Strategy, Transport, Workload
from scaleproof.spec.compute import ComputeOptions, compute_of
from scaleproof.spec.delay_law import MEANING, DelayText
from scaleproof.spec.errors import FieldError, SpecError
from scaleproof.spec.faults import MEANING as MEANING_OF_FAULTS
from scaleproof.spec.faults import FaultText
from scaleproof.spec.plugins import Kind, Options, WorkloadOptions
from scaleproof.spec.program_options import ProgramOptions
from scaleproof.spec.replica_traits import ReplicaTraits

Operation = Literal["all_reduce", "reduce_scatter", "all_gather", "broadcast"]
EMULATED = "emulated"
"""The value of an option of a suite's own program for which something stands in."""


class _SweepCase(CommonCase):
    """What sweeps over message sizes share."""

    iterations: PositiveInt = Field(20, description="Timed calls per size.")
    warmup: NonNegativeInt = Field(3, description="Calls or steps before the timed region; recorded, never counted.")
    budget_mib: PositiveFloat | None = Field(
        None,
        description="MiB that the timed iterations of one message size move at most: larger sizes get fewer of the "
        "case's iterations, at least 5, so that a launch over many sizes stays short; null: the same number "
        "at every size.",
    )


class TransferCase(_SweepCase):
    """Ping-pong between rank 0 and rank 1 over message sizes in bytes; a sample is one round trip."""

    program: Literal["transfer"] = "transfer"
    ranks: Annotated[int, Field(ge=2)] = 2
    transport_options: Transport = Field(alias="transport", description="How bytes move.")
    sizes: Annotated[
        tuple[NonNegativeInt, ...],
        Field(min_length=1, description="Sizes of a message, of an array or of a program's own data, in bytes."),
    ]

    @model_validator(mode="after")
    def _can_send(self) -> TransferCase:
        check_transfer(self)
        return self


class CollectiveCase(_SweepCase):
    """One operation over array sizes in bytes (total array, as nccl-tests counts); a sample is one call on one rank."""

    program: Literal["collective"] = "collective"
    transport_options: Transport = Field(alias="transport", description="How bytes move.")
    operation: Operation = Field("all_reduce", description="The operation that is timed.")
    dtype: str = Field("float32", description="Element type of the array.")
    sizes: Annotated[
        tuple[NonNegativeInt, ...],
        Field(min_length=1, description="Sizes of a message, of an array or of a program's own data, in bytes."),
    ]


class TrainCase(CommonCase):
    """Training steps of a workload under a strategy."""

    program: Literal["train"] = "train"
    framework_options: Framework = Field(Options(name="torch"), alias="framework", description="What computes.")
    strategy_options: Strategy = Field(alias="strategy", description="How replicas stay in step (docs/strategies.md).")
    workload_options: Workload = Field(alias="workload", description="Network and data.")
    minibatch: PositiveInt = Field(description="Samples of one step, all ranks together.")
    steps: PositiveInt = Field(description="Timed steps.")
    warmup: NonNegativeInt = Field(2, description="Calls or steps before the timed region; recorded, never counted.")
    learning_rate: PositiveFloat = Field(0.01, description="Learning rate of SGD.")
    momentum: float = Field(0.9, ge=0, lt=1, description="Momentum of SGD.")
    compute_options: Annotated[ComputeOptions, BeforeValidator(compute_of), SHORT] = Field(
        ComputeOptions(),
        alias="compute",
        description="How the forward and backward pass of a step are run: `compute.name` below.",
    )
    evaluate_every: NonNegativeInt = Field(0, description="Steps between evaluations on the test set; 0: none.")
    seconds: PositiveFloat | None = Field(
        None,
        description="Strategies whose ranks go at their own pace: no rank begins a step after so many s of true time; "
        "`steps` is then the most that a rank takes. null: every rank takes all its steps.",
    )
    step_delay: DelayText | None = Field(
        None, description=f"The same strategies: time that a rank waits in each step after computing, {MEANING}"
    )
    message_delay: DelayText | None = Field(
        None,
        description="The same strategies: time that a rank waits before it sends a message or calls, by the same laws.",
    )
    faults: FaultText | None = Field(
        None,
        description=f"The same strategies: what happens to their ranks and calls (docs/faults.md): {MEANING_OF_FAULTS}",
    )
    evaluate_s: PositiveFloat | None = Field(
        None,
        description="The same strategies: true time between evaluations, s, in place of `evaluate_every`. Each rank "
        "keeps its parameters at its first step that ends at or after the moment; they are evaluated after the run.",
    )

    @property
    def framework(self) -> str:
        """The framework's name."""
        return self.framework_options.name

    @property
    def strategy(self) -> str:
        """The strategy's name."""
        return self.strategy_options.name

    @property
    def workload(self) -> str:
        """The network's name."""
        return self.workload_options.name

    @property
    def dataset(self) -> str:
        """The name of the data; options that could not be read have the default."""
        return getattr(self.workload_options, "data", WorkloadOptions.model_fields["data"].default)

    @property
    def learnable(self) -> bool:
        """Whether its data can be learned; a data set that is not installed here counts as one that can."""
        return self.dataset not in registry.names("dataset") or self.plugin("dataset").target is not None

    def named(self) -> list[tuple[Kind, str]]:
        """See CommonCase."""
        return [*super().named(), ("dataset", self.dataset)]

    @property
    def compute(self) -> str:
        """real, none or replay."""
        return self.compute_options.name

    @property
    def replicas(self) -> ReplicaTraits | None:
        """Of a strategy that is a program of each rank; None: of others, and of one that is not installed here."""
        try:
            return self.plugin("strategy").rank_program
        except SpecError:
            return None

    @property
    def workers(self) -> int:
        """Ranks that train: all but servers that do nothing else."""
        traits = self.replicas
        return self.ranks - (traits.dedicated_servers(self) if traits and traits.dedicated_servers else 0)

    @property
    def shares(self) -> int:
        """Parts of a minibatch, each read by other ranks."""
        traits = self.replicas
        return traits.shares(self) if traits and traits.shares else self.workers

    @property
    def loss_ranks(self) -> int:
        """Ranks that have a loss in each step."""
        traits = self.replicas
        return traits.loss_ranks(self) if traits and traits.loss_ranks else self.workers

    @property
    def batch(self) -> int:
        """Samples that a rank computes at once: its part of a minibatch, or a micro-batch."""
        traits = self.replicas
        return traits.batch(self) if traits and traits.batch else self.minibatch // self.workers

    @property
    def replayed(self) -> bool:
        """Whether compute is taken from a profile, slept or simulated."""
        return self.compute == "replay" or self.plugin("fabric").predicted

    @model_validator(mode="after")
    def _training_fits(self) -> TrainCase:
        check_training(self)
        return self


class OwnCase(_SweepCase):
    """A suite's own program: every rank calls `run(context)` of the suite's `programs/<entry>.py`."""

    program: Literal["own"] = "own"
    entry: str = Field(
        pattern=r"^[a-z][a-z0-9_]*$",
        description="The suite's own program: `programs/<entry>.py` in its folder (docs/programs.md).",
    )
    source: str = Field(
        "",
        description="Digest of the suite's folder `programs`, filled in by the harness: another program, another case.",
    )
    options: dict[str, str | int | float] = Field(
        {},
        description="Options of that program. With `slept: 1`, or any option at `emulated` (`device: emulated`), "
        "launches are `emulated`. With `drawn: 1` its data are drawn from the launch's seed.",
    )
    sizes: tuple[NonNegativeInt, ...] = Field(
        (), description="Sizes of a message, of an array or of a program's own data, in bytes."
    )

    @field_validator("options")
    @classmethod
    def _named_where_missing(cls, values: dict[str, str | int | float], info: ValidationInfo) -> ProgramOptions:
        return ProgramOptions(info.data.get("entry", ""), values)

    @property
    def slept(self) -> bool:
        """Whether its ranks sleep in place of computing, or mostly wait: option `slept`. Without it a program cannot
        sleep (programs/common.py)."""
        return bool(self.options.get("slept"))

    @property
    def drawn(self) -> bool:
        """Whether its data are drawn from the launch's seed: option `drawn`. On fabric `simulated` its repetitions are
        a sample then, not draws from the inputs of one prediction."""
        return bool(self.options.get("drawn"))

    @property
    def stand_ins(self) -> tuple[str, ...]:
        """Its options with the value `emulated`: something stands in for what they name (spec/stand_ins.py)."""
        return tuple(name for name, value in self.options.items() if value == EMULATED)


AnyCase = TransferCase | CollectiveCase | TrainCase | OwnCase


def parse_case(values: Any) -> AnyCase:
    """A case from its mapping, options nested or dotted (`strategy.servers: 2`); pydantic's ValidationError, or
    SpecError for an unknown program, say what is wrong."""
    if isinstance(values, CommonCase):
        return values  # type: ignore[return-value]
    if not isinstance(values, dict) or not isinstance(values.get("program"), str):
        raise FieldError("program", f"missing; known: {', '.join(registry.names('program'))}")
    form: Any = registry.get("program", values["program"]).case
    case: AnyCase = form.model_validate(nested(values))
    return case
