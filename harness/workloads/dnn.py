"""CD-DNN (context-dependent acoustic model of speech recognition) and a small net of the same style for 8x8 digits."""

from __future__ import annotations

from harness.workloads.networks import Linear, Network, build, flat_input

_CD_DNN = (*(Linear(f"h{number}", 2048) for number in range(1, 8)), Linear("out", 9304, classifier=True))
_DNN_DIGITS = (*(Linear(f"h{number}", 128) for number in range(1, 4)), Linear("out", 10, classifier=True))


def cd_dnn(image_side: int | None = None, width: float = 1.0) -> Network:
    """Seven hidden layers of 2048 between 429 inputs (frames in context) and 9304 senones."""
    return build("cd_dnn", flat_input("cd_dnn", 429, image_side), _CD_DNN, width)


def dnn_digits(image_side: int | None = None, width: float = 1.0) -> Network:
    """Three hidden layers of 128 between 64 pixels and 10 classes; smooth (tanh), see vgg_digits."""
    return build("dnn_digits", flat_input("dnn_digits", 64, image_side), _DNN_DIGITS, width, "tanh")
