"""Hybrid parallelism (das2016): fully connected layers are divided over the ranks of a group, minibatches over groups;
every update is distributed.

Rank r is number r % P of group r // P, with P = N / G ranks. Convolutions are data-parallel over all N ranks. Before
the fully connected layers the samples ("points") of a group are part-broadcast, so that each rank has all MB / G of
them for its strip of every layer. Strips of activations are part-broadcast to the next layer, and gradients of
activations are part-reduced. Logits and labels are part-broadcast too: every rank computes the loss of its group's
points, and takes its slice of the gradient of the logits. A strip's update is distributed over the G ranks that hold
it. G = N is the distributed update without division of layers. Part-broadcast and part-reduce are das2016's terms for
all-gather and reduce-scatter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from time import monotonic_ns as now
from typing import TYPE_CHECKING, Self

import numpy as np
from pydantic import Field

from scaleproof.collectives.group import Group
from scaleproof.spec.case import TrainCase
from scaleproof.spec.case_checks import written_key
from scaleproof.spec.common_case import NATIVE
from scaleproof.spec.emulated import shrunk
from scaleproof.spec.errors import FieldError
from scaleproof.spec.plugins import StrategyPlugin
from scaleproof.spec.tags import synchronous_tags
from scaleproof.strategies import distributed_update, hybrid_step, update_parts
from scaleproof.strategies.activations import Activations
from scaleproof.strategies.base import ReplicaGroup
from scaleproof.strategies.buckets import Parameter
from scaleproof.strategies.distributed_update import DistributedUpdate
from scaleproof.strategies.strategy_options import OverlapOptions, check_divided
from scaleproof.strategies.update_parts import SharedParameters
from scaleproof.transports.contract import Collectives, Handle
from scaleproof.workloads.data import Batch
from scaleproof.workloads.networks import Network
from scaleproof.workloads.strips import divided, own_values, strip_bounds, strips
from scaleproof.workloads.volumes import best_groups, closed_form_groups, formula_groups, volume, volumes

if TYPE_CHECKING:
    from scaleproof.core.context import RankContext


@dataclass(frozen=True, slots=True)
class Division:
    """A rank's part of the division. `together`: the ranks of its group; `across`: the ranks that hold the same strips;
    `network`: its part of the network."""

    groups: int
    together: Group
    across: Group
    network: Network
    activations: Activations

    @property
    def name(self) -> str:
        """Name of the strips that these ranks hold."""
        return f"strip {self.together.rank} of {self.together.world_size}"


class Hybrid(DistributedUpdate):
    """Activations and gradients are sent through one queue, in the same order on every rank."""

    def __init__(
        self,
        context: RankContext,
        group: Collectives | None,
        parameters: Sequence[Parameter],
        bucket_mib: float,
        *,
        division: Division,
        whole_network: Network,
    ) -> None:
        self.division, self.network = division, division.network
        self._strips = strips(division.network)
        super().__init__(context, group, parameters, bucket_mib)
        division.activations.run = self._run
        self._facts = context.facts["hybrid"] = _facts(context, division, whole_network)

    @classmethod
    def open(cls, context: RankContext, group: Collectives | None, network: Network, bucket_mib: float) -> Self:
        """See Strategy."""
        assert isinstance(group, Group) and isinstance(context.case, TrainCase)
        division = divide(group, network, context.case)
        parameters = [
            Parameter(name, shrunk(int(np.prod(shape)), context.case.shrink))
            for name, shape in division.network.parameter_shapes
        ]
        return cls(context, group, parameters, bucket_mib, division=division, whole_network=network)

    @property
    def gradient_scale(self) -> float:
        """The loss is the mean over a group's points, so that the sum over groups is scaled to the mean over all."""
        return 1.0 / self.division.groups

    @property
    def replica_groups(self) -> list[ReplicaGroup]:
        """See Strategy."""
        shared, own = self._indices(False), self._indices(True)
        return [
            ReplicaGroup("all", self.group, shared),
            *([ReplicaGroup(self.division.name, self.division.across, own)] if own else []),
        ]

    @property
    def evaluators(self) -> range:
        """The ranks of rank 0's group."""
        return range(self.division.together.world_size)

    def divide(self, limit_nbytes: float) -> list[SharedParameters]:
        """See DistributedUpdate: strips among the ranks that hold them, all other parameters among all ranks."""
        divided_parameters = []
        for family in self.replica_groups:
            assert family.group is not None
            divided_parameters += (
                [update_parts.allocate(family.group, self.parameters, family.indices, limit_nbytes)]
                if family.indices
                else []
            )
        return divided_parameters

    def own_values(self, values: list[np.ndarray]) -> list[np.ndarray]:
        """See Strategy."""
        return own_values(self.network, values)

    def whole_values(self, values: list[np.ndarray]) -> list[np.ndarray]:
        """See Strategy; strips of a group are padded to the widest one and gathered."""
        return [
            value if strip is None else self._joined(value, strip.features)
            for value, strip in zip(values, self._strips, strict=True)
        ]

    def own_batch(self, batch: Batch) -> Batch:
        """See Strategy: the labels of the whole group."""
        ranks = self.division.together.world_size
        if ranks == 1 or not len(batch.labels):
            return batch
        labels = np.empty(ranks * len(batch.labels), batch.labels.dtype)
        self.division.activations.gather(np.ascontiguousarray(batch.labels), labels)
        return Batch(batch.inputs, labels)

    def begin(self, step: int) -> None:
        """See Strategy."""
        super().begin(step)
        self._before = self._sent()

    def finish(self, update: Callable[[], None]) -> None:
        """See Strategy; the record gets the bytes that the last step sent."""
        super().finish(update)
        self._facts["sent"] = {name: nbytes - self._before[name] for name, nbytes in self._sent().items()}

    def _run(self, nbytes: int, call: Callable[[], Handle]) -> None:
        """Exchanges activations. The pass waits for this call, and so for all calls submitted before it."""
        start = now()
        number = self._sender.submit(nbytes, call)
        self.context.post.wait()
        self._sender.wait(number)
        self.context.post.stop_waiting()
        self.context.recorder.add("activations", self.step, start, now(), nbytes)

    def _sent(self) -> dict[str, int]:
        assert self.group is not None
        inside, between = self.division.together.traffic.nbytes, self.division.across.traffic.nbytes
        return {"activations": inside, "strips": between, "replicated": self.group.traffic.nbytes - inside - between}

    def _joined(self, value: np.ndarray, features: int) -> np.ndarray:
        group = self.division.together
        bounds = strip_bounds(features, group.world_size)
        widest = max(stop - start for start, stop in zip(bounds, bounds[1:], strict=False))
        own = np.zeros((widest, *value.shape[1:]), np.float32)
        own[: len(value)] = value
        everyone = np.empty((group.world_size, *own.shape), np.float32)
        self.division.activations.gather(own.reshape(-1), everyone.reshape(-1))
        return np.concatenate(
            [strip[: stop - start] for strip, start, stop in zip(everyone, bounds, bounds[1:], strict=False)]
        )

    def _indices(self, of_strips: bool) -> list[int]:
        return [index for index, strip in enumerate(self._strips) if (strip is not None) == of_strips]


def divide(group: Group, network: Network, case: TrainCase) -> Division:
    """Divides the ranks into groups of neighbours: the case's number of groups, or the number that sends the fewest
    bytes. All ranks call it."""
    groups = case.value("strategy.groups", 0) or best_groups(network, case.ranks, case.minibatch)
    size = case.ranks // groups
    mine = group.rank // size
    together = group.part(range(mine * size, (mine + 1) * size))
    across = group.part(range(group.rank % size, case.ranks, size))
    activations = Activations(together, case.shrink)
    return Division(groups, together, across, divided(network, size, together.rank, activations), activations)


def _facts(context: RankContext, division: Division, network: Network) -> dict[str, object]:
    """For the record: the number of groups, the volumes of all possible numbers by formula, and the bytes that a step
    should send."""
    case = context.case
    assert isinstance(case, TrainCase)
    table = {
        str(choice.groups): asdict(choice) | {"sent": choice.sent}
        for choice in volumes(network, case.ranks, case.minibatch)
    }
    chosen = volume(network, case.ranks, case.minibatch, division.groups)
    undivided = division.together.world_size == 1  # all ranks hold all parameters
    return {
        "groups": division.groups,
        "ranks_per_group": division.together.world_size,
        "chosen_by": "case" if case.value("strategy.groups", 0) else "fewest bytes",
        "best_groups": best_groups(network, case.ranks, case.minibatch),
        "formula_groups": formula_groups(network, case.ranks, case.minibatch),
        "closed_form_groups": closed_form_groups(network, case.ranks, case.minibatch),
        "volumes": table,
        "formula": {
            "activations": chosen.activations + chosen.logits,
            "strips": chosen.strips * (not undivided),
            "replicated": chosen.replicated + chosen.strips * undivided,
        },
    }


simulated_plan = hybrid_step.simulated_plan
simulated_step = distributed_update.simulated_step
simulated_passes = hybrid_step.with_activations


class HybridOptions(OverlapOptions):
    """Options of strategy hybrid."""

    groups: int = Field(
        0,
        ge=0,
        description="Groups of ranks: fully connected layers are divided over the ranks of a group, minibatches over "
        "groups; 0: the number that sends the fewest bytes.",
    )


def check(case: TrainCase) -> None:
    """Raises FieldError if the groups do not divide the ranks, or collectives cannot run inside a group."""
    groups = case.options_of(HybridOptions).groups
    if groups and case.ranks % groups:
        raise FieldError("strategy.groups", f"{groups} groups do not divide {case.ranks} ranks")
    check_divided(case)
    if case.collective == NATIVE:
        requirement = (
            "collectives inside groups of ranks: an algorithm (ring, ...) over a transport's sends, not 'native'"
        )
        raise FieldError(written_key(case, "collective"), f"strategy 'hybrid' needs {requirement}")
    if case.plugin("collective").knows_nodes:
        message = "strategy 'hybrid' calls collectives of groups of ranks, which know no nodes; use 'ring'"
        raise FieldError("collective", message)
    if case.compute == "none":
        message = "strategy 'hybrid' exchanges activations within the passes; without them there is nothing to show"
        raise FieldError("compute", message)


PLUGIN = StrategyPlugin(
    name="hybrid",
    summary="fully connected layers divided inside groups of ranks, the distributed update between them",
    implementation=Hybrid,
    options=HybridOptions,
    check=check,
    communicates_beside_compute=True,
    divides_update=True,
    divides_layers=True,
    simulated_step=simulated_step,
    simulated_plan=simulated_plan,
    simulated_passes=simulated_passes,
    tags=synchronous_tags("MP+DP", "hybrid", exchange="scatter-reduce", topology="distributed-PS(k=n)"),
)
