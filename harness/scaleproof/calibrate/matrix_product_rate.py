"""Measures the float32 operations per second of one core in a matrix product; run as `python -m
scaleproof.calibrate.matrix_product_rate` with one thread for NumPy's BLAS.

The fastest of many products counts: a float32 training by direct products does no more operations per second and core.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from itertools import islice

import numpy as np

SIDE = 1024
FLOP = 2 * SIDE**3
"""Operations of one product of SIDE x SIDE matrices."""
PRODUCTS = 40


def main() -> None:
    """Print {"flop_per_second": value}."""
    json.dump({"flop_per_second": FLOP / min(islice(products(), PRODUCTS))}, sys.stdout)


def products() -> Iterator[float]:
    """Endless: the time in s of one product after the other."""
    left, right = (np.random.default_rng(seed).random((SIDE, SIDE), np.float32) for seed in (0, 1))
    result = np.empty_like(left)
    while True:
        start = time.perf_counter()
        np.matmul(left, right, out=result)
        yield time.perf_counter() - start


if __name__ == "__main__":
    main()
