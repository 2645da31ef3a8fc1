"""Profiles: how long each layer's forward and backward pass takes for a batch, measured on a machine or calculated from
a node's peak rate."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self, TypeGuard

from pydantic import (
    BaseModel,
    ConfigDict,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    ValidationError,
    model_validator,
)

from scaleproof.core.atomic_write import write_form
from scaleproof.core.missing_input import MissingInput
from scaleproof.spec.case import AnyCase, TrainCase
from scaleproof.spec.errors import SpecError, shown
from scaleproof.workloads.case_network import network_of
from scaleproof.workloads.networks import Network

if TYPE_CHECKING:
    from scaleproof.spec.gpu_node import RankType

FOLDER = "profiles"
"""Folder of profiles in a machine's folder results/machines/<id>/."""
FRAMEWORK = "torch"
"""The framework whose layers can be timed one by one."""
FILE = "profile.json"
"""Name of the profile in the folder and the record of a launch that replays it."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Spread(_Part):
    """A time in s: the median over `n` fresh processes and its interval. A calculated time has n 0 and no interval."""

    median: NonNegativeFloat
    low: NonNegativeFloat | None = None
    high: NonNegativeFloat | None = None
    n: NonNegativeInt = 0


class LayerTimes(_Part):
    """Times of one layer for the profile's batch. The last layer's times include the loss."""

    name: str
    mac: NonNegativeInt
    """Multiply-accumulates per sample of the forward pass, as in the network's table."""
    forward_s: Spread
    backward_s: Spread
    """The layer's whole backward pass."""
    weight_s: Spread
    """First part of the backward pass, until the gradients of the layer's parameters are final. The rest computes the
    gradient of its input."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.weight_s.median > self.backward_s.median:
            raise ValueError(f"layer {self.name!r}: weight_s is longer than backward_s, which includes it")
        return self


class Profile(_Part):
    """One network at one batch (samples of one rank) in one framework on one kind of node."""

    schema_version: Literal[1] = 1
    workload: str
    image_side: PositiveInt | None = None
    width: PositiveFloat = 1.0
    batch: PositiveInt
    framework: str
    """Framework that was measured; `peak`: calculated, without a framework."""
    threads: PositiveInt
    """Compute threads of the rank."""
    node: str
    """The machine's id, or the name of a node type."""
    code: str = ""
    """Digest of the code that measured."""
    measured_at: str = ""
    """UTC, ISO 8601."""
    taken: str
    """Description of how the times were determined."""
    layers: tuple[LayerTimes, ...]
    update_s: Spread

    @property
    def forward_s(self) -> float:
        """Forward pass of the whole network: the sum of the layers' medians."""
        return sum(layer.forward_s.median for layer in self.layers)

    @property
    def backward_s(self) -> float:
        """Backward pass of the whole network: the sum of the layers' medians."""
        return sum(layer.backward_s.median for layer in self.layers)

    @property
    def step_s(self) -> float:
        """One step without communication."""
        return self.forward_s + self.backward_s + self.update_s.median

    def why_not(self, network: Network, batch: int) -> str:
        """Reason why this profile does not apply to that network and batch; empty if it applies."""
        if [layer.name for layer in self.layers] != [layer.name for layer in network.layers]:
            return (
                f"is of another network: {self.workload} with {len(self.layers)} layers, not {network.name} "
                f"with {len(network.layers)}"
            )
        for own, other in zip(self.layers, network.layers, strict=True):
            if own.mac != other.mac:
                return (
                    f"is of another size of {self.workload}: layer {own.name} has {own.mac} "
                    f"multiply-accumulates a sample, not {other.mac}"
                )
        return "" if self.batch == batch else f"is of batch {self.batch}, not {batch}"


def peak_profile(
    network: Network,
    batch: int,
    node: str | RankType,
    efficiency: float,
    *,
    image_side: int | None = None,
    width: float = 1.0,
) -> Profile:
    """A profile calculated from FLOP at a share of the peak rate of a node type (clusters/nodes.yaml), or of a GPU of
    one (clusters/gpu_nodes.yaml). A multiply-accumulate takes 2 FLOP in the forward pass, 2 for the weights' gradient
    and 2 for the input's gradient, which the first layer with weights does not need. Layers without products and the
    update take no time, as in the balance equations of das2016 (section 3). Raises SpecError for an unknown node
    type."""
    from scaleproof.spec.gpu_node import RankType, rank_type  # reads YAML, which no rank needs

    kind = node if isinstance(node, RankType) else rank_type(node)
    second = batch * 2 / (kind.peak_flops * efficiency)
    layers = []
    for layer in network.layers:
        backward = 2 * layer.mac - (layer.input_mac if layer is network.trainable[0] else 0)
        times = [Spread(median=mac * second) for mac in (layer.mac, backward, layer.mac)]
        layers.append(
            LayerTimes(name=layer.name, mac=layer.mac, forward_s=times[0], backward_s=times[1], weight_s=times[2])
        )
    return Profile(
        workload=network.name,
        image_side=image_side,
        width=width,
        batch=batch,
        framework="peak",
        threads=kind.cores,
        node=node if isinstance(node, str) else node.summary,
        layers=tuple(layers),
        taken=f"reckoned: FLOP over {efficiency:g} of {_giga(kind)} GFLOP/s ({kind.source})",
        update_s=Spread(median=0.0),
    )


def _giga(kind: RankType) -> str:
    return f"{kind.peak_flops / 1e9:.5g}"


def path_of(
    folder: Path, workload: str, image_side: int | None, width: float, batch: int, framework: str, threads: int
) -> Path:
    """Path of a machine's profile; `folder` is results/machines/<id>."""
    side = "" if image_side is None else f"-side{image_side}"
    return folder / FOLDER / f"{workload}{side}-width{width:g}-batch{batch}-{framework}-threads{threads}.json"


def write(profile: Profile, folder: Path) -> Path:
    """Writes a profile into the machine's folder, atomically."""
    path = path_of(
        folder, profile.workload, profile.image_side, profile.width, profile.batch, profile.framework, profile.threads
    )
    return write_form(path, profile)


def read(path: Path) -> Profile:
    """Reads a profile. Raises SpecError, with a message of one line, for a file that is no profile."""
    try:
        return Profile.model_validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise SpecError(
            f"{shown(path)}: no profile of this version: {where + ': ' if where else ''}{first['msg']}"
        ) from None


def replayed(case: AnyCase) -> TypeGuard[TrainCase]:
    """Whether a case's compute times come from a profile: its ranks sleep for them, or the simulator uses them."""
    return isinstance(case, TrainCase) and (
        case.compute == "replay" or (case.plugin("fabric").predicted and case.compute == "real")
    )


def profile_of(case: TrainCase, folder: Path) -> Profile:
    """Whose compute a case replays or simulates: its node type at its efficiency, or what `scaleproof profile` measured
    on the machine of this folder (results/machines/<id>). SpecError when there is none, with the command that makes it,
    or when the file is of another network, batch or machine."""
    network, batch = network_of(case), case.batch
    if case.compute_options.profile is not None and case.compute_options.efficiency is not None:
        return peak_profile(
            network,
            batch,
            case.compute_options.profile,
            case.compute_options.efficiency,
            image_side=case.workload_options.image_side,
            width=case.workload_options.width,
        )
    if case.framework != FRAMEWORK:
        raise MissingInput(
            f"{case.framework} compiles a backward pass as a whole: it has no times by layer",
            f"set framework: {FRAMEWORK}, or name a node type",
        )
    path = path_of(
        folder,
        case.workload,
        case.workload_options.image_side,
        case.workload_options.width,
        batch,
        case.framework,
        case.threads_per_rank,
    )
    if not path.exists():
        raise MissingInput(
            f"this machine has no profile of {_description(case, batch)}",
            f"type `{command(case)}`, or name a node type: profile and efficiency",
        )
    profile = read(path)
    why = profile.why_not(network, batch)
    if not why and profile.node != folder.name:
        why = f"is of another machine, {profile.node}, not {folder.name}"
    if not why and (profile.framework, profile.threads) != (case.framework, case.threads_per_rank):
        why = (
            f"is of {profile.framework} with {profile.threads} threads, not {case.framework} with "
            f"{case.threads_per_rank}"
        )
    if why:
        raise MissingInput(f"{shown(path)} {why}", f"`{command(case)}` makes a new one")
    return profile


def command(case: TrainCase) -> str:
    """The command that measures the profile that a case needs."""
    side = "" if case.workload_options.image_side is None else f" --image-side {case.workload_options.image_side}"
    width = "" if case.workload_options.width == 1 else f" --width {case.workload_options.width:g}"
    threads = "" if case.threads_per_rank == 1 else f" --threads {case.threads_per_rank}"
    return f"scaleproof profile --workload {case.workload}{side}{width} --batch {case.batch}{threads}"


def _description(case: TrainCase, batch: int) -> str:
    options = case.workload_options
    side = "" if options.image_side is None else f" at side {options.image_side}"
    return (
        f"{case.workload}{side}, width {options.width:g}, batch {batch}, {case.framework} with "
        f"{case.threads_per_rank} threads"
    )
