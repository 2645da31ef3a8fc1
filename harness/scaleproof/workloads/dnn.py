"""Fully connected networks: CD-DNN (context-dependent acoustic model of speech recognition), FCN-5, and a small one for
8x8 digits."""

from __future__ import annotations

from scaleproof.workloads.layers import Linear
from scaleproof.workloads.networks import Network, build, no_images

_CD_DNN = (*(Linear(f"h{number}", 2048) for number in range(1, 8)), Linear("out", 9304, classifier=True))
_FCN5 = (*(Linear(f"fc{number}", 4096) for number in range(1, 5)), Linear("fc5", 10, classifier=True))
_DNN_DIGITS = (*(Linear(f"h{number}", 128) for number in range(1, 4)), Linear("out", 10, classifier=True))


def cd_dnn(image_side: int | None = None, width: float = 1.0) -> Network:
    """Seven hidden layers of 2048 between 429 inputs (frames in context) and 9304 senones."""
    return build("cd_dnn", no_images("cd_dnn", (429,), image_side), _CD_DNN, width)


def fcn5(image_side: int | None = None, width: float = 1.0) -> Network:
    """FCN-5 of xue2019: 784 inputs, four hidden layers of 4096, 10 classes; its size is the published 204.47 MiB."""
    return build("fcn5", no_images("fcn5", (784,), image_side), _FCN5, width)


def dnn_digits(image_side: int | None = None, width: float = 1.0) -> Network:
    """Three hidden layers of 128 between 64 pixels and 10 classes; smooth (tanh), see vgg_digits."""
    return build("dnn_digits", no_images("dnn_digits", (64,), image_side), _DNN_DIGITS, width, "tanh")
