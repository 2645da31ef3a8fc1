"""PageRank by three methods, with teleportation and dangling mass spread evenly over all pages.

With P the links of non-dangling pages over their out-degree, d the dangling pages and u = 1/n:
    power iteration   x <- a P' x + u (a d'x + (1 - a))                              Brin and Page 1998
    Gauss-Seidel      on (I - a P') y = u, then x = y / sum(y)                       Del Corso, Gulli, Romani 2005: the same x
    GMRES             on the same system, SciPy's, never restarted                   Gleich, Zhukov, Berkhin 2004
One iteration is one product with P' in all three; GMRES also makes its new direction orthogonal to all that it has.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.sparse import csc_array, csr_array, eye_array, tril, triu
from scipy.sparse.linalg import LinearOperator, splu
from scipy.sparse.linalg import gmres as scipy_gmres

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
        """One step of the surfer. What no link carried on, by teleportation or from dangling pages, falls evenly on all pages."""
        carried: Vector = self.links @ x
        carried += (x.sum() - carried.sum()) * self.even[0]
        return carried

    def residual(self, x: Vector) -> float:
        """1-norm of the distance of x to its next step; the error is at most this over 1 - DAMPING."""
        return float(np.abs(self.step(x) - x).sum())


def power(problem: Problem, iterations: int) -> Vector:
    """The surfer's distribution after so many steps from the even one."""
    x = problem.even
    for _ in range(iterations):
        x = problem.step(x)
    return x


def gauss_seidel(problem: Problem, iterations: int) -> Vector:
    """Sweeps in the order of the ids, from the even distribution."""
    y = problem.even
    for _ in range(iterations):
        y = problem.lower.solve(problem.even + problem.upper @ y)
    return y / y.sum()


def gmres(problem: Problem, iterations: int) -> Vector:
    """One cycle of so many iterations, from zero, without a preconditioner."""
    y, _ = scipy_gmres(problem.system, problem.even, rtol=0.0, atol=0.0, restart=iterations, maxiter=1)
    return y / y.sum()


METHODS: dict[str, Callable[[Problem, int], Vector]] = {"power": power, "gauss_seidel": gauss_seidel, "gmres": gmres}


def iterations_to(problem: Problem, method: str, tolerance: float, limit: int) -> int | None:
    """Fewest iterations with a residual of at most the tolerance, by bisection; None when `limit` are too few."""
    run, low, high = METHODS[method], 0, 1
    while problem.residual(run(problem, high)) > tolerance:
        if high == limit:
            return None
        low, high = high, min(2 * high, limit)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if problem.residual(run(problem, middle)) <= tolerance else (middle, high)
    return high
