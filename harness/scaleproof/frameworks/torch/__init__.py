"""PyTorch, eager: its models and its layers."""

from __future__ import annotations

from scaleproof.spec.plugins import FrameworkPlugin

PLUGIN = FrameworkPlugin(
    name="torch",
    summary="PyTorch, eager",
    implementation="scaleproof.frameworks.torch.torch_model:TorchModel",
    stacked="scaleproof.frameworks.torch.torch_stacked:TorchReplicas",
    stage="scaleproof.frameworks.torch.torch_stage:TorchStage",
    requires=("torch",),
    import_s=1.5,
    resident_bytes=350 * 2**20,
)
