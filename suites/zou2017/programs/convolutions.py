"""Time and workspace of real convolution algorithms, forward pass, layer by layer of a network, for several
minibatches.

direct    torch's convolution: oneDNN on a CPU, cuDNN's choice on a GPU
gemm      the image as a matrix (im2col), then a matrix product
fft       product of spectra
kn2row    a product for every element of the kernel, added into the result; for stride 1 only
winograd  F(2x2, 3x3): 16 products instead of 36 per tile; for 3x3 kernels with stride 1 only

Options: `workload`, `width`, `image_side` (0: the network's own), `device` (cpu or cuda), `x1`, `x2`, ... the
minibatches. A sample is one call: its event is `conv.` and the algorithm, its step the layer's number, `value` the
minibatch, `nbytes` the workspace: the peak memory beyond the memory held before and the result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from suite_programs.algorithms import ALGORITHMS, Shape
from suite_programs.workspace import Workspace

from scaleproof.core.context import RankContext
from scaleproof.core.recorder import now
from scaleproof.programs.common import mark, timed_iterations
from scaleproof.spec import registry
from scaleproof.spec.case import AnyCase, OwnCase
from scaleproof.workloads.layers import Conv, pads
from scaleproof.workloads.networks import Layer, Network

PRELOAD = ("torch",)
AGREE = 1e-3
"""Largest difference from the direct algorithm, relative to its largest element: algorithms round differently."""


def obstacle(case: AnyCase) -> tuple[str, str] | None:
    """Device `cuda` needs a GPU."""
    if not isinstance(case, OwnCase) or case.options.get("device") != "cuda":
        return None
    import torch

    if torch.cuda.is_available():
        return None
    return (
        f"cuDNN needs a GPU, and torch {torch.__version__} sees none",
        "run it on a machine with a GPU and a torch with CUDA (https://pytorch.org/get-started)",
    )


def run(context: RankContext) -> None:
    """See the module. After the timed calls every algorithm's result is compared with that of `direct`."""
    import torch

    case = context.case
    assert isinstance(case, OwnCase)
    torch.set_num_threads(case.threads_per_rank)
    layers = convolutions(case)
    context.facts["layers"] = [layer.name for layer in layers]
    device = str(case.options["device"])
    workspace = Workspace(torch, device)
    context.facts["workspace"] = workspace.how
    calls = [
        (number, int(points), algorithm, _call(torch, device, layer, int(points), algorithm, context.seed))
        for name, points in sorted(case.options.items())
        if name.startswith("x")
        for number, layer in enumerate(layers)
        for algorithm in ALGORITHMS
        if ALGORITHMS[algorithm].fits(_shape(layer))
    ]
    mark(context, "start", 0)
    with torch.inference_mode():
        for iteration in timed_iterations(context, case.warmup, case.iterations):
            for number, points, algorithm, prepare in calls:
                context.at(iteration, f"{algorithm} of layer {number}, minibatch {points}")
                _sample(context, workspace, f"conv.{algorithm}", number, points, prepare())
    mark(context, "end", 0)
    _compare(context, torch, calls)


def convolutions(case: OwnCase) -> list[Layer]:
    """The network's convolutions."""
    options = case.options
    network: Network = registry.load("workload", str(options["workload"]))(
        int(options["image_side"]) or None, float(options["width"])
    )
    return [layer for layer in network.layers if isinstance(layer.spec, Conv)]


def _shape(layer: Layer) -> Shape:
    spec = layer.spec
    assert isinstance(spec, Conv)
    (out, maps, high, wide), (_, side, across) = layer.weight_shape, layer.input_shape
    return Shape(
        maps,
        out,
        (high, wide),
        spec.stride,
        (pads(side, high, spec.stride, spec.pad), pads(across, wide, spec.stride, spec.pad)),
    )


Prepared = tuple[Callable[[], Any], int]
"""A call, and the bytes of its result."""


def _call(torch: Any, device: str, layer: Layer, points: int, algorithm: str, seed: int) -> Callable[[], Prepared]:
    """A function that prepares a call. Inputs are drawn again for every call, because storing them would fill the
    memory; they are the same for all algorithms."""

    def prepare() -> Prepared:
        random = torch.Generator().manual_seed(seed)
        shape = _shape(layer)
        images = torch.randn(points, *layer.input_shape, generator=random)
        weights = (
            torch.randn(layer.weight_shape, generator=random)
            / (layer.weight_shape[1] * layer.weight_shape[2] * layer.weight_shape[3]) ** 0.5
        )
        images, weights = shape.padded(torch, images).to(device), weights.to(device)
        out = 4 * points * layer.output_shape[0] * layer.output_shape[1] * layer.output_shape[2]
        return lambda: ALGORITHMS[algorithm].compute(torch, images, weights, shape.stride), out

    return prepare


def _sample(
    context: RankContext, workspace: Workspace, event: str, number: int, points: int, prepared: Prepared
) -> None:
    call, out_nbytes = prepared
    with workspace:
        start = now()
        result = call()
        workspace.synchronise()
        end = now()
    del result
    context.recorder.add(event, number, start, end, max(workspace.nbytes - out_nbytes, 0), points)


def _compare(context: RankContext, torch: Any, calls: list[tuple[int, int, str, Callable[[], Prepared]]]) -> None:
    smallest = min(points for _, points, _, _ in calls)
    expected, worst = {}, dict.fromkeys(ALGORITHMS, 0.0)
    with torch.inference_mode():
        for number, points, algorithm, prepare in calls:
            if points == smallest:
                result = prepare()[0]()
                expected.setdefault(number, result)
                difference = (result - expected[number]).abs().max() / expected[number].abs().max()
                worst[algorithm] = max(worst[algorithm], float(difference))
    for algorithm, difference in worst.items():
        context.check(f"result.{algorithm}", difference <= AGREE, f"at most {difference:.2g} from direct")
