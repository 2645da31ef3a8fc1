"""Adam without the classes of torch.optim takes the same steps as they do, to the last bit."""

from __future__ import annotations

import subprocess
import sys
from textwrap import dedent

import pytest

COMPARED = dedent(
    """
    import sys
    import torch
    from torch.nn import functional
    from scaleproof.frameworks.torch import adam

    def parameter():
        return torch.nn.Parameter(torch.randn(40, 6, generator=torch.Generator().manual_seed(3)))

    def losses(step, table):
        picked = torch.randint(0, 40, (8,), generator=torch.Generator().manual_seed(step))
        return functional.embedding(picked, table, sparse=SPARSE).sin().sum() * (step + 1)

    SPARSE = sys.argv[1] == "sparse"
    ours, theirs = parameter(), parameter()
    own = (adam.SparseAdam if SPARSE else adam.Adam)([ours], 0.03)
    for step in range(5):
        own.zero_grad()
        losses(step, ours).backward()
        own.step()
    assert "torch._dynamo" not in sys.modules
    own.zero_grad()
    try:
        own.step()
    except ValueError as error:
        assert "1 of 1 parameters" in str(error)
    else:
        raise AssertionError("a step without gradients")
    optimizer = torch.optim.SparseAdam([theirs], 0.03) if SPARSE else torch.optim.Adam([theirs], 0.03, fused=True)
    for step in range(5):
        optimizer.zero_grad()
        losses(step, theirs).backward()
        optimizer.step()
    assert torch.equal(ours, theirs) and not torch.equal(ours, parameter())
    """
)


@pytest.mark.parametrize("gradients", ["dense", "sparse"])
def test_a_step_is_that_of_torch_and_imports_no_compiler(gradients: str) -> None:
    pytest.importorskip("torch")
    # In a process of its own: torch.optim imports much.
    done = subprocess.run([sys.executable, "-c", COMPARED, gradients], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
