"""How many float32 operations per second one core does in a matrix product; run as `python -m
scaleproof.calibrate.matrix_product_rate` with one thread for NumPy's BLAS.

The fastest of many products counts: what is trained in float32 by direct products does not do more of them per core.
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
"""Of one product of n x n matrices."""
PRODUCTS = 40


def main() -> None:
    """Print {"flop_per_second": value}."""
    json.dump({"flop_per_second": FLOP / min(islice(products(), PRODUCTS))}, sys.stdout)


def products() -> Iterator[float]:
    """Without end: the seconds of one product after the other."""
    left, right = (np.random.default_rng(seed).random((SIDE, SIDE), np.float32) for seed in (0, 1))
    result = np.empty_like(left)
    while True:
        start = time.perf_counter()
        np.matmul(left, right, out=result)
        yield time.perf_counter() - start


if __name__ == "__main__":
    main()
