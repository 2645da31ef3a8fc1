"""Options of pipelines, what they mean for a case, and what does not fit."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from scaleproof.pipelines.division import Division, division_of
from scaleproof.pipelines.schemes import schedule_of, schemes
from scaleproof.pipelines.timing import GradientSync
from scaleproof.spec.case import TrainCase
from scaleproof.spec.errors import FieldError, SpecError
from scaleproof.spec.plugins import Options
from scaleproof.spec.registry import nearest
from scaleproof.strategies.replica import check_replicas
from scaleproof.workloads.case_network import network_of


class PipelineOptions(Options):
    """Options of pipelines."""

    scheme: str = Field("dapple", description="Order of passes: a scheme of docs/pipelines.md.")
    stages: int = Field(ge=2, description="Stages; as many ranks share a pipeline. More ranks: several groups of them.")
    micro_batches: int = Field(ge=1, description="Micro-batches of a group of ranks in a step.")
    pairs: int = Field(1, ge=1, description="Schemes with pipelines in opposite directions: pairs of them.")
    cut: Literal["work", "blocks"] = Field(
        "work",
        description="work: stages with as few multiply-accumulates at most as possible; blocks: each has as many of "
        "the network's numbered blocks (transformers).",
    )
    activations: Literal["kept", "recomputed"] = Field(
        "kept",
        description="recomputed: only a stage's inputs are kept, and its forward pass is repeated before the backward "
        "pass.",
    )
    gradient_sync: GradientSync = Field(
        "eager",
        description="When replicas of a stage begin to add up their gradients: eager: after its last backward pass; "
        "eager_opt: the same where the rank has a gap after it, else after all passes; late: after all passes, one "
        "stage after the other.",
    )
    compare: Literal["none", "one_process"] = Field(
        "none",
        description="one_process: after the training rank 0 trains the whole network with the same micro-batches, and "
        "records the largest difference of a parameter (event `difference`).",
    )
    forward_ms: float | None = Field(
        None,
        gt=0,
        description="Replayed or simulated: ms of a stage's forward pass of a micro-batch; null: its layers'.",
    )
    backward_ms: float | None = Field(
        None, gt=0, description="The same of its backward pass, without what is recomputed."
    )


def division(case: TrainCase) -> Division:
    """How the ranks of a case hold the network's stages."""
    options = case.options_of(PipelineOptions)
    return division_of(
        network_of(case),
        case.ranks,
        scheme=options.scheme,
        stages=options.stages,
        micro_batches=options.micro_batches,
        pairs=options.pairs,
        balance=options.cut,
    )


def check(case: TrainCase) -> None:
    """Raises FieldError for stages, micro-batches and a minibatch that do not fit, and what no strategy of ranks can
    do."""
    check_replicas(case)
    options = case.options_of(PipelineOptions)
    _check_counts(case, options)
    try:
        schedule = schedule_of(options.scheme, options.stages, options.micro_batches, options.pairs)
    except FieldError:
        raise
    except SpecError as error:
        raise FieldError("strategy.scheme", str(error)) from None
    if case.batch * schedule.unit % 1:
        message = f"a micro-batch of {case.batch} samples has no halves; {2 * case.minibatch} would do"
        raise FieldError("minibatch", message)
    if options.scheme == "pipedream_2bw" and options.micro_batches < options.stages:
        message = f"pipedream_2bw keeps two versions: at least as many micro-batches as the {options.stages} stages"
        raise FieldError("strategy.micro_batches", message)
    if case.seconds is not None:
        raise FieldError("seconds", "the ranks of a pipeline take the same steps; leave it out")
    if case.step_delay is not None:
        raise FieldError("step_delay", "is of strategies whose ranks compute whole gradients; leave it out")
    if (options.forward_ms is None) != (options.backward_ms is None):
        given = "forward_ms" if options.forward_ms is not None else "backward_ms"
        raise FieldError(f"strategy.{given}", "forward_ms and backward_ms go together")
    if options.forward_ms is not None and not case.replayed:
        raise FieldError("strategy.forward_ms", "is for replayed compute: set compute: replay, or fabric: simulated")
    network = network_of(case)
    if network.normalises and case.compute == "real" and options.compare != "none":
        message = f"{case.workload} normalises over the samples of a micro-batch: no training alone equals it"
        raise FieldError("strategy.compare", message)
    division(case)


def _check_counts(case: TrainCase, options: PipelineOptions) -> None:
    if options.scheme not in schemes():
        raise FieldError("strategy.scheme", f"unknown scheme; {nearest(options.scheme, list(schemes()))}")
    if case.ranks % options.stages:
        fitting = [each for each in range(2, case.ranks + 1) if case.ranks % each == 0]
        near = sorted(sorted(fitting, key=lambda each: abs(each - options.stages))[:2])
        message = f"{options.stages} stages do not divide {case.ranks} ranks; {' or '.join(map(str, near))} would do"
        raise FieldError("strategy.stages", message)
    parts = case.ranks // options.stages * options.micro_batches
    if case.minibatch % parts:
        lower = case.minibatch - case.minibatch % parts
        near = [each for each in (lower, lower + parts) if each]
        message = f"{case.minibatch} does not divide into {parts} micro-batches; {' or '.join(map(str, near))} would do"
        raise FieldError("minibatch", message)


def shares(case: TrainCase) -> int:
    """Groups of ranks, each with its part of a minibatch."""
    return max(1, case.ranks // case.options_of(PipelineOptions).stages)


def loss_ranks(case: TrainCase) -> int:
    """Ranks with the last stage, which compute losses."""
    options = case.options_of(PipelineOptions)
    schedule = schedule_of(options.scheme, options.stages, options.micro_batches, options.pairs)
    last = {worker for (_, stage), worker in schedule.workers_of().items() if stage == options.stages - 1}
    return shares(case) * len(last)


def micro_batch(case: TrainCase) -> int:
    """Samples of a micro-batch."""
    return case.minibatch // (shares(case) * case.options_of(PipelineOptions).micro_batches)
