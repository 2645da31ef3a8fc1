"""Which numbers of stages and which micro-batch a scheme is given on a number of nodes: of those that fit in memory the
ones with the shortest iteration. Li and Hoefler (2021, section 3.4) take the largest micro-batch that fits first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import prod

from scaleproof.pipelines.memory import ITEM, StageBytes, peak_bytes
from scaleproof.pipelines.schemes import schedule_of
from scaleproof.pipelines.throughput import Line, Setting, iteration_s
from scaleproof.spec.errors import FieldError, SpecError
from scaleproof.workloads.networks import Network
from scaleproof.workloads.stages import cut

GB = 1e9


@dataclass(frozen=True, slots=True)
class Machine:
    """Nodes with a GPU each: how many, bytes of a GPU, seconds of a multiply-accumulate forward and backward, and what
    messages cost."""

    nodes: int
    memory: float
    forward: float
    backward: float
    line: Line


@dataclass(frozen=True, slots=True)
class Configuration:
    """D stages, W groups of them, B samples of a micro-batch, and what an iteration takes, s, and a worker holds."""

    stages: int
    groups: int
    samples: int
    recompute: bool
    seconds: float
    peak: float


def setting_of(
    network: Network, scheme: str, minibatch: int, machine: Machine, stages: int, samples: int,
    recompute: bool, pairs: int = 1,
) -> Setting:  # fmt: skip
    """A scheme with this many stages, each of equally many blocks, and micro-batches of so many samples."""
    parts, groups = cut(network, stages, "blocks"), machine.nodes // stages
    return Setting(
        scheme=scheme,
        stages=stages,
        micro_batches=minibatch // (groups * samples),
        groups=groups,
        forward=tuple(part.mac * samples * machine.forward for part in parts),
        backward=tuple(part.mac * samples * machine.backward for part in parts),
        activations=ITEM * samples * prod(parts[1].input_shape),
        gradients=tuple(float(ITEM * part.parameters) for part in parts),
        line=machine.line,
        recompute=recompute,
        pairs=pairs,
    )


@lru_cache
def best(network: Network, scheme: str, minibatch: int, machine: Machine) -> Configuration:
    """The configuration of the shortest iteration. SpecError where none fits in memory, with what would do."""
    found = list(_candidates(network, scheme, minibatch, machine))
    if not found:
        raise SpecError(f"{scheme} has no number of stages for {minibatch} samples on {machine.nodes} nodes")
    fitting = [each for each in found if each.peak <= machine.memory]
    if not fitting:
        least = min(each.peak for each in found)
        raise SpecError(
            f"no schedule of {scheme} fits in {machine.memory / GB:.3g} GB a GPU; {least / GB:.3g} GB would do"
        )
    return min(fitting, key=lambda each: each.seconds)


def _candidates(network: Network, scheme: str, minibatch: int, machine: Machine) -> Iterator[Configuration]:
    """All that divide nodes, blocks and samples, micro-batches in powers of two."""
    for stages in (each for each in range(2, machine.nodes + 1) if machine.nodes % each == 0):
        try:
            parts = cut(network, stages, "blocks")
        except FieldError:
            continue
        share, samples = minibatch // (machine.nodes // stages), 1
        while share and minibatch % (machine.nodes // stages) == 0 and share % samples == 0:
            try:
                schedule = schedule_of(scheme, stages, share // samples)
            except SpecError:
                samples *= 2
                continue
            held = StageBytes.of(parts, samples)
            for recompute in (False, True):
                setting = setting_of(network, scheme, minibatch, machine, stages, samples, recompute)
                peak = peak_bytes(schedule, held, recompute)
                yield Configuration(
                    stages, machine.nodes // stages, samples, recompute, iteration_s(setting), peak
                )  # fmt: skip
            samples *= 2
