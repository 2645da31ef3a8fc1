"""What passes of a stage import is imported with it, once for all ranks; torch's compiler would take a second of
processor time on each, and nothing needs it."""

from __future__ import annotations

import subprocess
import sys

import pytest

PASS = """
import sys
import numpy as np
from scaleproof.frameworks.torch.torch_stage import TorchStage
from scaleproof.spec import registry
from scaleproof.workloads.stages import cut
network = registry.load("workload", {name!r})({side}, {width})
parameters = np.zeros(network.parameters, np.float32)
stage = TorchStage(network, np.zeros_like(parameters), first=True, threads=1, recompute=False)
before = set(sys.modules)
stage.use(parameters)
inputs = np.zeros((2, *network.input_shape), {kind!r})
stage.loss(0, inputs, np.zeros({labels}, np.int64), 1.0)
stage.backward(0, None)
first = cut(network, 2)[0]
stage = TorchStage(first, np.zeros(first.parameters, np.float32), first=True, threads=1, recompute=False)
stage.use(np.zeros(first.parameters, np.float32))
stage.backward(1, np.zeros_like(stage.forward(1, inputs)))
late = [name for name in set(sys.modules) - before if name.startswith(("sympy", "torch.fx"))]
print("torch._dynamo" in sys.modules, late)
"""


@pytest.mark.parametrize(
    ("name", "side", "width", "kind", "labels"),
    [
        ("small_gpt", None, 1.0, "int64", (2, 16)),
        ("vgg_a", 32, 0.125, "float32", (2,)),
        ("overfeat_fast", 71, 0.125, "float32", (2,)),
    ],
)
def test_a_pass_imports_no_compiler(
    name: str, side: int | None, width: float, kind: str, labels: tuple[int, ...]
) -> None:
    code = PASS.format(name=name, side=side, width=width, kind=kind, labels=labels)
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout.strip()) == (0, "False []"), ran.stdout + ran.stderr[-2000:]
