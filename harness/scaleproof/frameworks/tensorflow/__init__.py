"""TensorFlow 2, compiled functions: its models and its layers."""

from __future__ import annotations

from scaleproof.spec.plugins import FrameworkPlugin

PLUGIN = FrameworkPlugin(
    name="tensorflow",
    summary="TensorFlow 2, compiled functions",
    implementation="scaleproof.frameworks.tensorflow.tensorflow_model:TensorflowModel",
    requires=("tensorflow",),
    gradients_one_by_one=False,
    own_optimiser_memory=True,
    import_s=6.0,
    resident_bytes=650 * 2**20,
)
