"""BPR of the library implicit, as a way to learn. It knows clicks alone, and not which items a user was shown: the
other item of a pair is that of a random click of anybody. A pair is skipped where its user has clicked that item, too.
"""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
from suite_programs.contract import Settings, Work
from suite_programs.interactions import Interactions
from suite_programs.movielens import ADVICE

NAME = "bpr_library"
"""The method, as options name it."""
MODULE = "implicit.cpu.bpr"
NEEDED = ("implicit", "tqdm")
"""Packages that the environment does not have: the library, and what it imports."""


def obstacle() -> tuple[str, str] | None:
    """Why the library cannot be used here, and what to do."""
    missing = next((name for name in NEEDED if find_spec(name) is None), None)
    return None if missing is None else (f"package {missing} is not installed, which method {NAME} needs", ADVICE)


class LibraryBpr:
    """A pass is an epoch of the library: it draws as many pairs as there are clicked items of users. First factors are
    its own, of both signs, with a bias of each item as one more column beside `dim`. An item that a user has clicked
    more than once counts once. One thread: several would race, and a seed would no longer fix the factors."""

    def __init__(self, rows: Interactions, settings: Settings, seed: int) -> None:
        from implicit.cpu.bpr import BayesianPersonalizedRanking
        from implicit.recommender_base import ModelFitError
        from scipy.sparse import csr_matrix

        user, item = rows.user[rows.clicked], rows.item[rows.clicked]
        self._clicks = csr_matrix((np.ones(len(user), np.float32), (user, item)), (rows.users, rows.items))
        self._diverged = ModelFitError
        self._model = BayesianPersonalizedRanking(
            factors=settings.dim,
            learning_rate=settings.rate,
            regularization=2 * settings.l2,  # it stands in the step, where the derivative of l2 |x|^2 has 2 l2 x
            iterations=1,  # of each call of `fit`, which goes on from the factors that it finds
            num_threads=1,
            verify_negative_samples=True,
            random_state=np.random.default_rng([seed, 9]),  # a number would draw the same pairs in each pass
        )
        self.work = Work()

    def one_pass(self) -> float | None:
        """See Learner. The library computes no loss."""
        try:
            self._model.fit(self._clicks, show_progress=False, callback=self._count)
        except self._diverged:
            return float("inf")
        return None

    def _count(self, _epoch: int, _seconds: float, _in_order: int, skipped: int) -> None:
        done = self._clicks.nnz - skipped
        self.work.updates += done
        self.work.pairs += done

    def scores(self, users: int) -> np.ndarray:
        """See Learner."""
        found: np.ndarray = self._model.user_factors[:users].astype(float) @ self._model.item_factors.T.astype(float)
        return found
