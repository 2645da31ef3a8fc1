"""Ways to learn scores from interactions, each a Learner (contract.py): SAROS, BPR, BPR_b, and what does not learn.
BPR of a library has a file of its own (library_bpr.py)."""

from __future__ import annotations

import numpy as np
from suite_programs import kernels, library_bpr
from suite_programs.contract import Learner, Settings, Work
from suite_programs.interactions import Blocks, Interactions, blocks_of, blocks_of_clicks, limits, pairs_of

from scaleproof.spec.program_options import choice

INITIAL = 0.1
"""Standard deviation of the first factors."""
SIGNS = ("normal", "positive")


class Factors:
    """First factors: those of the items and of the first `known` users do not depend on how many follow them."""

    def __init__(self, rows: Interactions, known: int, settings: Settings, seed: int) -> None:
        dim, real, further = settings.dim, np.random.default_rng([seed, 1]), np.random.default_rng([seed, 2])
        self.items = INITIAL * real.standard_normal((rows.items, dim))
        first = real.standard_normal((known, dim))
        more = further.standard_normal((rows.users - known, dim))
        self.users = INITIAL * np.concatenate((first, more))
        if settings.initial == "positive":
            self.users, self.items = np.abs(self.users), np.abs(self.items)
        self.work = Work()

    def scores(self, users: int) -> np.ndarray:
        """See Learner."""
        found: np.ndarray = self.users[:users] @ self.items.T
        return found


class Saros(Factors):
    """A step after each block; a user with too few or too many blocks is undone (SAROS, algorithm 1). Momentum is kept
    for each row, and changes with the row's own steps."""

    def __init__(self, rows: Interactions, known: int, settings: Settings, seed: int, blocks: Blocks) -> None:
        super().__init__(rows, known, settings, seed)
        self.blocks, self._settings = blocks, settings
        counts = blocks_of(rows).of_user  # limits are about the paper's blocks, whatever a step is
        least, most = limits(counts, settings.least, settings.most)
        self.undone = (counts < least) | (counts > (settings.fixed_most or most))
        self._velocities = np.zeros_like(self.users), np.zeros_like(self.items)
        # Real users are in one order, whatever bots come between them.
        real, further = np.random.default_rng([seed, 3]), np.random.default_rng([seed, 4])
        moments = np.concatenate((real.random(known), further.random(rows.users - known)))
        self.order = np.argsort(moments, kind="stable")

    def one_pass(self) -> float:
        """See Learner."""
        return self.steps_of(self.order)

    def steps_of(self, order: np.ndarray) -> float:
        """A part of a pass: a step for each block of these users. Returns the mean loss before them."""
        of, b = self._settings, self.blocks
        loss, blocks, pairs = kernels.saros_pass(
            self.users, self.items, *self._velocities, order, b.first, b.start, b.middle, b.end, b.item,
            of.rate, of.l2, of.momentum, self.undone,
        )  # fmt: skip
        self.work.updates += blocks
        self.work.pairs += pairs
        return float(loss)


class Bpr(Factors):
    """As many steps in a pass as there are clicks, each on a click and an item without one of the same user, both drawn
    (Rendle et al. 2009)."""

    def __init__(self, rows: Interactions, known: int, settings: Settings, seed: int) -> None:
        super().__init__(rows, known, settings, seed)
        self._pairs, self._settings = pairs_of(rows), settings
        self._random = np.random.default_rng([seed, 5])

    def one_pass(self) -> float:
        """See Learner."""
        of, p = self._settings, self._pairs
        draws = self._random.random((len(p.user), 2))
        loss = kernels.bpr_pass(
            self.users, self.items, p.user, p.clicked, p.first_other, p.other, draws, of.rate, of.l2
        )
        self.work.updates += len(draws)
        self.work.pairs += len(draws)
        return float(loss)


class FullBatch(Factors):
    """BPR_b: one step in a pass, along the gradient of all pairs; each user counts equally, as one block."""

    def __init__(self, rows: Interactions, known: int, settings: Settings, seed: int) -> None:
        super().__init__(rows, known, settings, seed)
        self._pairs, self._settings = pairs_of(rows), settings
        self._gradients = np.zeros_like(self.users), np.zeros_like(self.items)

    def one_pass(self) -> float:
        """See Learner."""
        of, p = self._settings, self._pairs
        loss, pairs = kernels.full_gradient(
            self.users, self.items, p.first_clicked, p.clicked, p.first_other, p.other, of.l2, *self._gradients
        )
        self.users -= of.rate * self._gradients[0]
        self.items -= of.rate * self._gradients[1]
        self.work.updates += 1
        self.work.pairs += pairs
        return float(loss) / len(self.users)


class MostPopular:
    """Scores are clicks in the training part, the same for all users."""

    def __init__(self, rows: Interactions) -> None:
        self._clicks = np.bincount(rows.item[rows.clicked], minlength=rows.items).astype(float)
        self.work = Work()

    def one_pass(self) -> None:
        """See Learner; there is no loss."""

    def scores(self, users: int) -> np.ndarray:
        """See Learner."""
        return np.broadcast_to(self._clicks, (users, len(self._clicks)))


METHODS = ("saros", "saros_clicks", "bpr", "bpr_b", library_bpr.NAME, "mostpop", "untrained")


def learner_of(method: str, rows: Interactions, known: int, settings: Settings, seed: int) -> Learner:
    """`known`: real users, the first of all. SpecError names the methods."""
    choice({"method": method}, "method", METHODS)
    if method in ("saros", "untrained"):
        return Saros(rows, known, settings, seed, blocks_of(rows))
    if method == "saros_clicks":
        return Saros(rows, known, settings, seed, blocks_of_clicks(rows, np.random.default_rng([seed, 8])))
    if method == "bpr":
        return Bpr(rows, known, settings, seed)
    if method == "bpr_b":
        return FullBatch(rows, known, settings, seed)
    if method == library_bpr.NAME:
        return library_bpr.LibraryBpr(rows, settings, seed)
    return MostPopular(rows)
