"""Fully connected networks: CD-DNN (context-dependent acoustic model of speech recognition), FCN-5, and a small one for
8x8 digits."""

from __future__ import annotations

from scaleproof.workloads.layers import Linear
from scaleproof.workloads.workload import ReferenceCounts, Workload

_CD_DNN = (*(Linear(f"h{number}", 2048) for number in range(1, 8)), Linear("out", 9304, classifier=True))
_FCN5 = (*(Linear(f"fc{number}", 4096) for number in range(1, 5)), Linear("fc5", 10, classifier=True))
_DNN_DIGITS = (*(Linear(f"h{number}", 128) for number in range(1, 4)), Linear("out", 10, classifier=True))

# inputs: frames in context; classes: senones
cd_dnn = Workload(
    name="cd_dnn",
    title="CD-DNN",
    summary="CD-DNN, 429-2048x7-9304, 45.1 M parameters",
    input_shape=(429,),
    layers=_CD_DNN,
    reference=ReferenceCounts(
        weights=45_099_008,
        biases=23_640,
        forward_mac=45_099_008,
        source="429-2048 x 7-9304 senones",
        provenance="memory_high (shape; 45.1 M is the published parameter count), derived (counts)",
    ),
)
fcn5 = Workload(
    name="fcn5",
    summary="FCN-5, 784-4096x4-10, 53.6 M parameters",
    input_shape=(784,),
    layers=_FCN5,
    reference=ReferenceCounts(
        weights=53_583_872,
        biases=16_394,
        forward_mac=53_583_872,
        source="784-4096x4-10",
        provenance="memory_high (shape; its size is the published one to the last digit), derived (counts)",
        tensors=10,
        mib=204.47,
    ),
)
# Smooth (tanh), as vgg_digits.
dnn_digits = Workload(
    name="dnn_digits",
    title="DNN-style, digits",
    summary="small DNN-style net for 8x8 digits",
    input_shape=(64,),
    layers=_DNN_DIGITS,
    activation="tanh",
    reference=ReferenceCounts(
        weights=42_240,
        biases=394,
        forward_mac=42_240,
        source="this project: DNN style for 8x8 digits",
        provenance="own (shapes), derived (counts)",
    ),
)

PLUGINS = (cd_dnn, fcn5, dnn_digits)
