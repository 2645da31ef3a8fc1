"""The program of saros2019 that records the loss over the number of updates."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scaleproof.core.context import RankContext
from scaleproof.programs.own import load_entry
from scaleproof.rank.unsupervised_ranks import run_ranks
from tests.short_form import case_from
from tests.unit.suites.test_saros2019_programs import OPTIONS, PROGRAMS, module


def learner_of(method: str) -> tuple[Any, Any]:
    """A task and what learns it, not yet trained."""
    load_entry(PROGRAMS, "updates")
    recommender, learners = module("recommender"), module("learners")
    task = recommender.task_of(OPTIONS, 0)
    return task, learners.learner_of(method, task.train, task.known, recommender.settings_of(OPTIONS), 0)


def curve(folder: Path, method: str, iterations: int, rate: float = 0.1) -> dict[str, list[list[float]]]:
    """Updates and values by event, of a launch."""
    program: Any = load_entry(PROGRAMS, "updates")
    of = {"suite": "saros2019", "experiment": "e", "arm": "a", "program": "own", "entry": "updates", "ranks": 1}
    options = OPTIONS | {"method": method, "rate": rate}
    case = case_from(of | {"iterations": iterations, "warmup": 0, "options": options})

    def body(context: RankContext) -> None:
        program.run(context)
        found: dict[str, list[list[float]]] = {}
        for row in context.recorder._rows[: context.recorder._count]:
            found.setdefault(row["event"].decode(), []).append([int(row["step"]), float(row["value"])])
        (folder / "found.json").write_text(json.dumps(found))

    assert run_ranks(case, body) == [""]
    loaded: dict[str, list[list[float]]] = json.loads((folder / "found.json").read_text())
    return loaded


def test_a_pass_in_parts_learns_what_a_whole_pass_does() -> None:
    updates = importlib.import_module("suite_programs.updates") if load_entry(PROGRAMS, "updates") else None
    assert updates is not None
    (_, whole), (_, divided) = learner_of("saros"), learner_of("saros")
    whole.one_pass()
    counts = [divided.work.updates for _ in updates.parts_of(divided, 1)]
    assert (divided.users == whole.users).all() and (divided.items == whole.items).all()
    assert counts[-1] == whole.work.updates and counts == sorted(set(counts))
    powers = [2 ** int(count).bit_length() for count in counts[:-1]]
    assert all(later >= power for later, power in zip(counts[1:-1], powers[:-1], strict=True))


def test_the_loss_is_the_mean_over_users_of_the_mean_over_their_pairs() -> None:
    task, learner = learner_of("saros")
    learner.one_pass()
    expected = []
    for user in range(task.train.users):
        rows = task.train.part(task.train.user == user)
        scores = learner.items[rows.item] @ learner.users[user]
        margins = scores[rows.clicked][:, None] - scores[~rows.clicked]
        if margins.size:
            expected.append(np.log1p(np.exp(-margins)).mean())
    updates, interactions = module("updates"), module("interactions")
    assert updates.pair_loss(learner, interactions.pairs_of(task.train)) == pytest.approx(np.mean(expected))


def test_updates_are_counted_before_each_loss(tmp_path: Path) -> None:
    full = curve(tmp_path, "bpr_b", 5)["pair_loss"]
    assert [updates for updates, _ in full] == [0, 1, 2, 4, 5]
    blocks = curve(tmp_path, "saros", 2)["pair_loss"]
    (_, learner) = learner_of("saros")
    assert blocks[-1][0] == 2 * int(learner.blocks.of_user.sum()) and blocks[-1][1] < blocks[0][1]
    assert full[0][1] == blocks[0][1], "both begin with the same factors"


def test_a_training_that_diverges_says_after_how_many_updates(tmp_path: Path) -> None:
    found = curve(tmp_path, "bpr_b", 8, rate=1e6)
    ((updates, _),) = found["diverged"]
    assert updates > 0 and all(step < updates for step, _ in found["pair_loss"])
