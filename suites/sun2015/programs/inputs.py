"""Handwritten digits that come with scikit-learn, in an order of the launch's own."""

from __future__ import annotations

import numpy as np

from scaleproof.workloads.datasets.digits import load_digits


def digits(count: int, seed: int) -> np.ndarray:
    """So many images, (count, 64), float64 pixels from 0 to 1. ValueError where there are not as many, BadInput where
    the file is not the pinned one."""
    images = (load_digits()[0].astype(np.float64) + 1) / 2
    if not 0 < count <= len(images):
        raise ValueError(f"options.images: {count} is not between 1 and {len(images)}, the images of scikit-learn")
    chosen: np.ndarray = images[np.random.default_rng([seed, 0]).permutation(len(images))[:count]]
    return chosen


def pixels_in_range(images: np.ndarray) -> bool:
    """Whether all pixels are numbers from 0 to 1."""
    return bool(((images >= 0) & (images <= 1)).all())
