"""Images of 8x8 pixels whose classes depend only on the image at half the resolution, so that a convolution with
pooling loses nothing. What generated data sets share."""

from __future__ import annotations

import numpy as np

SIDE, COARSE = 8, 4
PIXELS, COARSE_PIXELS = SIDE * SIDE, COARSE * COARSE


def reduced(images: np.ndarray) -> np.ndarray:
    """Half the sums of blocks of 2x2 pixels, float64 (n, 16): of standard normal pixels standard normal again."""
    blocks = images.reshape(-1, COARSE, 2, COARSE, 2).astype(np.float64)
    return blocks.sum(axis=(2, 4)).reshape(-1, COARSE_PIXELS) / 2


def enlarged(coarse: np.ndarray) -> np.ndarray:
    """Images (n, 64) whose reduced form this is: a block of 2x2 pixels has half its value in each."""
    return np.kron(coarse.reshape(-1, COARSE, COARSE), np.full((1, 2, 2), 0.5)).reshape(-1, PIXELS)
