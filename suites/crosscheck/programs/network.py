"""The network of this suite's programs: the same data, initial parameters and modules as in program `train` with the
same fields."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from scaleproof.core.context import RankContext
from scaleproof.core.recorder import now
from scaleproof.frameworks.torch.torch_model import module_of
from scaleproof.programs.common import mark, timed_iterations
from scaleproof.programs.train_results import ARTIFACT_LIMIT
from scaleproof.spec.case import OwnCase, TrainCase, parse_case
from scaleproof.workloads.case_network import network_of
from scaleproof.workloads.data import Data, initial_parameters, open_data

FIELDS = {
    "workload": "workload",
    "width": "workload.width",
    "data": "workload.data",
    "minibatch": "minibatch",
    "learning_rate": "learning_rate",
    "momentum": "momentum",
    "bucket_mib": "strategy.bucket_mib",
}
"""Options of these programs, and the corresponding fields of a training."""


@dataclass(slots=True)
class Net:
    """What a rank trains: a module with its data, and the training that the case's options describe."""

    case: TrainCase
    module: nn.Module
    data: Data


def network(context: RankContext) -> Net:
    """The network for the options of the case; the case's iterations are the steps."""
    own = context.case
    assert isinstance(own, OwnCase)
    case = parse_case(
        {
            "program": "train",
            "suite": own.suite,
            "experiment": own.experiment,
            "arm": own.arm,
            "ranks": own.ranks,
            "transport": "gloo",
            "strategy": "sync_overlap",
            "threads_per_rank": own.threads_per_rank,
            "steps": own.iterations,
            "warmup": own.warmup,
            **{field: own.options[name] for name, field in FIELDS.items() if name in own.options},
        }
    )
    assert isinstance(case, TrainCase)
    torch.set_num_threads(case.threads_per_rank)
    shape = network_of(case)
    module = module_of(shape)
    values = initial_parameters(shape, context.seed)
    module.load_state_dict(dict(zip(module.state_dict(), map(torch.from_numpy, values), strict=True)), assign=True)
    return Net(case, module, open_data(case, shape, context.seed, context.rank))


def forward_backward(context: RankContext, step: int, net: Net, module: nn.Module) -> None:
    """Input, forward pass until the loss is a number, and backward pass, recorded as in `train`."""
    recorder = context.recorder
    with recorder.span("input", step):
        batch = net.data.batch(step)
    with recorder.span("forward", step):
        loss = nn.functional.cross_entropy(module(torch.from_numpy(batch.inputs)), torch.from_numpy(batch.labels))
        loss.item()
    with recorder.span("backward", step):
        loss.backward()  # type: ignore[no-untyped-call]


def timed_steps(context: RankContext, net: Net, one_step: Callable[[int], None], barrier: Callable[[], Any]) -> None:
    """Warm-up, a barrier, then the timed steps; `value` of a step is this rank's samples."""
    case = net.case
    samples = case.minibatch // case.ranks
    for step in timed_iterations(context, case.warmup, case.steps):
        if step == case.warmup:
            barrier()
            mark(context, "start", step)
        context.at(step, "step")
        started = now()
        one_step(step)
        context.recorder.add("step", step, started, now(), value=samples)
    mark(context, "end", case.warmup + case.steps - 1)


def same_everywhere(context: RankContext, module: nn.Module) -> None:
    """After the timed region: checks that all ranks have the same parameters. Rank 0 stores those of small networks, as
    in `train`."""
    total = [float(parameter.detach().double().sum()) for parameter in module.parameters()]
    everyone = context.rendezvous.exchange("parameters", context.rank, context.world_size, total)
    values = np.concatenate([parameter.detach().numpy().reshape(-1) for parameter in module.parameters()])
    if context.rank == 0 and values.size <= ARTIFACT_LIMIT:
        np.save(context.folder / "parameters.npy", values)
        context.artifacts["parameters.npy"] = context.folder / "parameters.npy"
    context.check(
        "final_parameters",
        all(other == everyone[0] for other in everyone),
        f"sums of {len(total)} tensors on {len(everyone)} ranks",
    )
