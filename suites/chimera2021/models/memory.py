"""Memory of this paper's schemes on Piz Daint, and which configuration fits there and is the fastest, by the model."""

from __future__ import annotations

from pydantic import Field

from scaleproof.claims.arithmetic import Arguments, Count, Published
from scaleproof.claims.metrics import Metric
from scaleproof.pipelines.configurations import GB, Configuration, best
from scaleproof.pipelines.memory import StageBytes, peak_bytes
from scaleproof.pipelines.schemes import schedule_of
from scaleproof.workloads.stages import cut

from .arguments import NetworkName, Scheme, Stages, network
from .throughput import DAPPLE_2048, GPU_BYTES, line_of, machine_of


class Held(Arguments):
    """A scheme's schedule."""

    workload: NetworkName = Field(description="The network.")
    scheme: Scheme
    stages: Stages
    micro_batches: Count = Field(description="N, micro-batches of a group of workers.")
    samples: Count = Field(description="B, samples of a micro-batch.")
    recompute: bool = Field(False, description="Whether activations are recomputed.")


class Search(Arguments):
    """A scheme on nodes with a P100 each."""

    workload: NetworkName = Field(description="The network.")
    nodes: Count = Field(description="P = W D.")
    minibatch: Count = Field(description="Samples of an iteration, of all nodes.")
    scheme: Scheme


CALIBRATED_WITH = "chimera2021.fig1.mem.chimera"
CHIMERA_32 = Held(workload="gpt2_64", scheme="chimera", stages=32, micro_batches=32, samples=1)


def predicted_memory(x: Held, rows: Published) -> float:
    """Predicted memory of the worker that holds most, in GB (suite chimera2021).

    memory = weights x 16 B (value, gradient, two moments of Adam) + 4 B for each further version + activations of the
    micro-batches under way + what the model does not explain

    Activations of a transformer's layer follow Korthikanti et al. 2022, in float32. What is not explained, such as
    buffers of the framework and of messages, is the same for all: such that Chimera in Figure 1 has its published
    memory, the one row that is not judged. Arithmetic, no launches.
    """
    return (_modelled(x) + _unexplained(rows)) / GB


def _modelled(x: Held) -> float:
    held = StageBytes.of(cut(network(x.workload), x.stages, "blocks"), x.samples)
    return peak_bytes(schedule_of(x.scheme, x.stages, x.micro_batches), held, x.recompute)


def _unexplained(rows: Published) -> float:
    return GB * rows.positive(CALIBRATED_WITH) - _modelled(CHIMERA_32)


def _picked(x: Search, rows: Published) -> Configuration:
    line = line_of(DAPPLE_2048, rows)
    machine = machine_of("p100", x.nodes, GPU_BYTES - _unexplained(rows), line, rows)
    return best(network(x.workload), x.scheme, x.minibatch, machine)


def picked_stages(x: Search, rows: Published) -> float:
    """D of the configuration that the model picks (suite chimera2021).

    Of all numbers of stages, micro-batches in powers of two, with and without recomputation: the one with the shortest
    iteration of those that fit in 16 GB by [predicted_memory](predicted_memory.md). Arithmetic, no launches.
    """
    return float(_picked(x, rows).stages)


def picked_samples(x: Search, rows: Published) -> float:
    """B of the configuration that the model picks. See [picked_stages](picked_stages.md). Arithmetic, no launches
    (suite chimera2021)."""
    return float(_picked(x, rows).samples)


def picked_recompute(x: Search, rows: Published) -> float:
    """1 where the configuration that the model picks recomputes activations, else 0. See
    [picked_stages](picked_stages.md). Arithmetic, no launches (suite chimera2021)."""
    return float(_picked(x, rows).recompute)


def picked_throughput(x: Search, rows: Published) -> float:
    """Predicted throughput of the configuration that the model picks, in sequences/s. See
    [picked_stages](picked_stages.md). Arithmetic, no launches (suite chimera2021)."""
    return x.minibatch / _picked(x, rows).seconds


METRICS = [
    Metric("predicted_memory", "GB", "lower", model=predicted_memory, x=Held),
    Metric("picked_stages", "stages", None, model=picked_stages, x=Search),
    Metric("picked_samples", "samples", None, model=picked_samples, x=Search),
    Metric("picked_recompute", "bool", None, model=picked_recompute, x=Search),
    Metric("picked_throughput", "sequences/s", "higher", model=picked_throughput, x=Search),
]
