"""PageRank by three methods, with teleportation and dangling mass spread evenly over all pages.

With P the links of non-dangling pages over their out-degree, d the dangling pages and u = 1/n:
    power iteration   x <- a P' x + u (a d'x + (1 - a))                              Brin and Page 1998
    Gauss-Seidel      on (I - a P') y = u, then x = y / sum(y)                       Del Corso, Gulli, Romani 2005: the same x
    BiCGSTAB          on the same system, SciPy's                                    Gleich, Zhukov, Berkhin 2004
One iteration is one product with P' for the first two and two for BiCGSTAB.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.sparse import csc_array, csr_array, eye_array, tril, triu
from scipy.sparse.linalg import LinearOperator, bicgstab, splu

DAMPING = 0.85
Vector = np.ndarray
Watch = Callable[[Vector], bool]
"""Sees every iterate; True ends the iteration."""


class _Enough(Exception):
    """Ends SciPy's iteration from its callback."""


class Problem:
    """A graph's matrices, made once outside the timed region; `source` and `target` are its arcs."""

    def __init__(self, nodes: int, source: np.ndarray, target: np.ndarray) -> None:
        out = np.bincount(source, minlength=nodes)
        self.nodes = nodes
        self.links = csr_array((DAMPING / out[source], (target, source)), shape=(nodes, nodes))
        self.dangling = np.flatnonzero(out == 0)
        self.even = np.full(nodes, 1 / nodes)
        lower = csc_array(eye_array(nodes) - tril(self.links, -1))
        # The order is kept and no pivot is exchanged, so the factors are the triangle itself and a solve is one sweep.
        self.lower = splu(lower, permc_spec="NATURAL", diag_pivot_thresh=0.0)
        self.upper = csr_array(triu(self.links, 0))
        self.system = LinearOperator((nodes, nodes), matvec=lambda x: x - self.links @ x, dtype=float)

    def step(self, x: Vector) -> Vector:
        """One step of the surfer."""
        return self.links @ x + self.even[0] * (DAMPING * x[self.dangling].sum() + (1 - DAMPING) * x.sum())

    def residual(self, x: Vector) -> float:
        """1-norm of the distance of x to its next step; the error is at most this over 1 - DAMPING."""
        return float(np.abs(self.step(x) - x).sum())


def power(problem: Problem, iterations: int, watch: Watch | None = None) -> Vector:
    """The surfer's distribution after so many steps from the even one."""
    x = problem.even
    for _ in range(iterations):
        x = problem.step(x)
        if watch is not None and watch(x):
            break
    return x


def gauss_seidel(problem: Problem, iterations: int, watch: Watch | None = None) -> Vector:
    """Sweeps in the order of the ids."""
    y = problem.even
    for _ in range(iterations):
        y = problem.lower.solve(problem.even + problem.upper @ y)
        if watch is not None and watch(y / y.sum()):
            break
    return y / y.sum()


def bi_cgstab(problem: Problem, iterations: int, watch: Watch | None = None) -> Vector:
    """SciPy's BiCGSTAB from zero, without a preconditioner."""
    last = problem.even

    def seen(y: Vector) -> None:
        nonlocal last
        last = y
        if watch is not None and watch(y / y.sum()):
            raise _Enough

    try:
        last, _ = bicgstab(problem.system, problem.even, rtol=0.0, atol=0.0, maxiter=iterations, callback=seen if watch is not None else None)
    except _Enough:
        pass
    return last / last.sum()


METHODS: dict[str, Callable[..., Vector]] = {"power": power, "gauss_seidel": gauss_seidel, "bicgstab": bi_cgstab}
PRODUCTS = {"power": 1, "gauss_seidel": 1, "bicgstab": 2}
"""Products with the matrix of one iteration."""


def iterations_to(problem: Problem, method: str, tolerance: float, limit: int) -> int | None:
    """Iterations until the residual is at most the tolerance; None when `limit` are too few."""
    residuals: list[float] = []

    def watch(x: Vector) -> bool:
        residuals.append(problem.residual(x))
        return residuals[-1] <= tolerance

    METHODS[method](problem, limit, watch)
    return len(residuals) if residuals and residuals[-1] <= tolerance else None
