"""A framework: PyTorch under another name. Its library is imported when a rank loads the class."""

from __future__ import annotations

from scaleproof.spec.plugins import FrameworkPlugin

PLUGIN = FrameworkPlugin(
    name="torch_again",
    summary="PyTorch by another name",
    implementation="scaleproof.frameworks.torch.torch_model:TorchModel",
    requires=("torch",),
    import_s=1.5,
    resident_bytes=350 * 2**20,
)
