"""PageRank by three methods, with teleportation and dangling mass spread evenly over all pages.

With P the links of non-dangling pages over their out-degree, d the dangling pages and u = 1/n:
    power iteration   x <- a P' x + u (a d'x + (1 - a))                              Brin and Page 1998
    Gauss-Seidel      on (I - a P') y = u, then x = y / sum(y)                       Del Corso, Gulli, Romani 2005: the
    same x
    GMRES             on the same system, SciPy's, never restarted                   Gleich, Zhukov, Berkhin 2004
One iteration is one product with P' in all three; GMRES also makes its new direction orthogonal to all that it has.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.sparse import csc_array, csr_array, eye_array, tril, triu
from scipy.sparse.linalg import LinearOperator, gmres, splu

DAMPING = 0.85
Vector = np.ndarray


class Problem:
    """A graph's matrices, made once outside the timed region; `source` and `target` are its arcs."""

    def __init__(self, nodes: int, source: np.ndarray, target: np.ndarray) -> None:
        out = np.bincount(source, minlength=nodes)
        self.nodes = nodes
        self.links = csr_array((DAMPING / out[source], (target, source)), shape=(nodes, nodes))
        self.even = np.full(nodes, 1 / nodes)
        lower = csc_array(eye_array(nodes) - tril(self.links, -1))
        # The order is kept and no pivot is exchanged, so the factors are the triangle itself and a solve is one sweep.
        self.lower = splu(lower, permc_spec="NATURAL", diag_pivot_thresh=0.0)
        self.upper = csr_array(triu(self.links, 0))
        self.system = LinearOperator((nodes, nodes), matvec=lambda x: x - self.links @ x, dtype=float)

    def step(self, x: Vector) -> Vector:
        """One step of the random surfer. Mass of teleportation and of dangling pages is spread evenly over all
        pages."""
        carried: Vector = self.links @ x
        carried += (x.sum() - carried.sum()) * self.even[0]
        return carried

    def sweep(self, y: Vector) -> Vector:
        """One sweep of Gauss-Seidel over the system, in the order of the ids."""
        swept: Vector = self.lower.solve(self.even + self.upper @ y)
        return swept

    def residual(self, x: Vector) -> float:
        """1-norm of the distance of x to its next step; the error is at most this over 1 - DAMPING."""
        return float(np.abs(self.step(x) - x).sum())


STEPS: dict[str, Callable[[Problem, Vector], Vector]] = {"power": Problem.step, "gauss_seidel": Problem.sweep}
METHODS = (*STEPS, "gmres")


def solve(problem: Problem, method: str, iterations: int) -> Vector:
    """PageRank after `iterations` iterations, starting from the uniform distribution; GMRES starts from zero and runs
    one cycle without a preconditioner."""
    if method in STEPS:
        y = problem.even
        for _ in range(iterations):
            y = STEPS[method](problem, y)
    else:
        y, _ = gmres(problem.system, problem.even, rtol=0.0, atol=0.0, restart=iterations, maxiter=1)
    return y / y.sum()


def iterations_to(problem: Problem, method: str, tolerance: float, limit: int) -> int | None:
    """Fewest iterations with a residual of at most the tolerance; None if `limit` iterations are too few. GMRES returns
    no iterates, so its number is found by bisection."""
    if method not in STEPS:
        return _bisected(problem, method, tolerance, limit)
    y = problem.even
    for count in range(1, limit + 1):
        y = STEPS[method](problem, y)
        if problem.residual(y / y.sum()) <= tolerance:
            return count
    return None


def _bisected(problem: Problem, method: str, tolerance: float, limit: int) -> int | None:
    low, high = 0, 1
    while problem.residual(solve(problem, method, high)) > tolerance:
        if high == limit:
            return None
        low, high = high, min(2 * high, limit)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if problem.residual(solve(problem, method, middle)) <= tolerance else (middle, high)
    return high
