"""scikit-learn's SVC, LIBSVM's solver in C++, on the same samples with the same kernel, C and tolerance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from suite_programs.data_sets import Problem

NAMES = ("library", "library_unshrunk")


@dataclass(frozen=True, slots=True)
class Fitted:
    """`alpha`: float64 (training samples); `predictions`: of training samples and then test samples."""

    alpha: np.ndarray
    predictions: np.ndarray


def machine(name: str, problem: Problem, eps: float, cache_mb: int) -> Any:
    """Its tolerance is that of the whole gap: 2 eps of ours. Its cache of kernel rows has `cache_mb` MB; our solver has
    none."""
    from sklearn.svm import SVC

    return SVC(
        C=problem.limit, gamma=problem.width, tol=2 * eps, shrinking=name == "library", cache_size=cache_mb
    )  # fmt: skip


def fitted(machine: Any, problem: Problem) -> Fitted:
    """What it has found."""
    alpha = np.zeros(len(problem.labels))
    alpha[machine.support_] = np.abs(machine.dual_coef_[0])
    return Fitted(alpha, machine.predict(np.concatenate((problem.train.dense(), problem.test.dense()))))
