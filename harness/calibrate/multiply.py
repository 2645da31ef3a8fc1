"""How many float32 operations per second one core does in a matrix product; run as `python -m harness.calibrate.multiply` with one thread for NumPy's BLAS.

The fastest of many products counts: what is trained in float32 by direct products does not do more of them per core.
"""

from __future__ import annotations

import json
import sys
import time

import numpy as np

SIDE = 1024
PRODUCTS = 40


def main() -> None:
    """Print {"flop_per_second": value}; a product of n x n matrices is 2 n^3 operations."""
    left, right = (np.random.default_rng(seed).random((SIDE, SIDE), np.float32) for seed in (0, 1))
    result, fastest = np.empty_like(left), float("inf")
    for _ in range(PRODUCTS):
        start = time.perf_counter()
        np.matmul(left, right, out=result)
        fastest = min(fastest, time.perf_counter() - start)
    json.dump({"flop_per_second": 2 * SIDE**3 / fastest}, sys.stdout)


if __name__ == "__main__":
    main()
