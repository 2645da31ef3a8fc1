"""BPR of the library implicit as a way to learn in saros2019: what it ranks, what its steps and passes are, and what is
said without it."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scaleproof.programs.own import load_entry

SUITE = Path(__file__).resolve().parents[3] / "suites" / "saros2019"
EXTRA = "extra saros2019 (type: python3 -m tools.setup extras saros2019)"
CASE: dict[str, Any] = {"data": "planted", "method": "bpr_library"}


def module(name: str) -> Any:
    load_entry(SUITE / "programs", "recommender")
    return importlib.import_module(f"suite_programs.{name}")


def clicks(*of_users: list[int], items: int) -> Any:
    """Interactions of users that clicked these items, and were shown the others."""
    user = np.repeat(np.arange(len(of_users)), items)
    item = np.tile(np.arange(items), len(of_users))
    clicked = np.concatenate([np.isin(np.arange(items), chosen) for chosen in of_users])
    return module("interactions").Interactions(user, item, clicked, len(of_users), items)


def two_tastes(seed: int = 1) -> Any:
    """Users of two tastes, who click 12 of the 20 items that they like, and nothing else."""
    random = np.random.default_rng(seed)
    chosen = [sorted(20 * (user % 2) + random.permutation(20)[:12]) for user in range(60)]
    return clicks(*chosen, items=40)


def learner(rows: Any, seed: int = 5, rate: float = 0.1, l2: float = 0.001, dim: int = 4) -> Any:
    pytest.importorskip("implicit", reason=EXTRA)
    settings = module("contract").Settings(dim, "positive", rate, l2, 0, 0, 1, 0)
    return module("learners").learner_of("bpr_library", rows, rows.users, settings, seed)


def scores(passes: int, **wanted: Any) -> Any:
    made = learner(two_tastes(), **wanted)
    assert [made.one_pass() for _ in range(passes)] == [None] * passes
    return made.scores(60)


def test_items_of_a_users_taste_come_before_others_also_those_not_clicked() -> None:
    rows, found = two_tastes(), scores(30)
    clicked = np.zeros((60, 40), bool)
    clicked[rows.user[rows.clicked], rows.item[rows.clicked]] = True
    liked = np.arange(40)[None, :] // 20 == np.arange(60)[:, None] % 2
    assert found.shape == (60, 40) and found.dtype == float
    for user in range(60):
        assert found[user][clicked[user]].mean() > found[user][~clicked[user]].mean()
        assert found[user][liked[user] & ~clicked[user]].mean() > found[user][~liked[user]].mean()


def test_a_seed_fixes_the_scores_and_each_pass_goes_on_with_pairs_of_its_own() -> None:
    assert (scores(3) == scores(3)).all() and (scores(3) != scores(3, seed=6)).any()
    made = learner(two_tastes())
    done: list[int] = []
    moved: list[float] = []
    for _ in range(8):
        before, updates = made.scores(60) if done else np.zeros((60, 40)), made.work.updates
        made.one_pass()
        done.append(made.work.updates - updates)
        moved.append(float(np.abs(made.scores(60) - before).max()))
    assert min(moved) > 0 and len(set(done[1:])) > 1, "the same pairs would be skipped in each pass"


def test_a_pass_draws_as_many_pairs_as_there_are_clicks_and_skips_those_of_two_clicks() -> None:
    made = learner(two_tastes())
    for _ in range(20):
        made.one_pass()
    share = made.work.updates / (20 * 60 * 12)
    assert made.work.pairs == made.work.updates
    assert share == pytest.approx(1 - 0.5 * 12 / 20, abs=0.03), "half are of the own taste, 12 of whose 20 are clicked"
    everything = learner(clicks([0, 1], [0, 1], items=2))
    everything.one_pass()
    assert everything.work.updates == 0, "nothing is left to compare"


def test_a_step_is_that_of_bpr_with_a_bias_of_each_item() -> None:
    """Two users with a click each: a pass whose other draw was skipped makes one step, of one of two pairs."""
    rate, l2, checked = 0.3, 0.05, 0
    for seed in range(40):
        made = learner(clicks([0], [1], items=2), seed, rate, l2)
        made.one_pass()
        before = made._model.user_factors.astype(float), made._model.item_factors.astype(float)
        updates = made.work.updates
        made.one_pass()
        if made.work.updates != updates + 1:
            continue
        after = made._model.user_factors.astype(float), made._model.item_factors.astype(float)
        user = 0 if (after[0][0] != before[0][0]).any() else 1
        own, liked, other = before[0][user], before[1][user], before[1][1 - user]
        slope = 1 / (1 + np.exp(own @ (liked - other)))
        assert after[0][user, :4] == pytest.approx(
            own[:4] + rate * (slope * (liked - other) - 2 * l2 * own)[:4], abs=1e-6
        )
        assert after[1][user] == pytest.approx(liked + rate * (slope * own - 2 * l2 * liked), abs=1e-6)
        assert after[1][1 - user] == pytest.approx(other + rate * (-slope * own - 2 * l2 * other), abs=1e-6)
        assert after[0][user, 4] == own[4] == 1, "the last column is the bias of the item"
        checked += 1
    assert checked > 5


def test_a_step_that_is_too_large_has_diverged() -> None:
    made = learner(two_tastes(), rate=1e6)
    assert float("inf") in [made.one_pass() for _ in range(5)]


@pytest.mark.parametrize("lacking", ["implicit", "tqdm"])
def test_without_the_library_its_cases_alone_say_what_to_type(monkeypatch: pytest.MonkeyPatch, lacking: str) -> None:
    recommender, library = module("recommender"), module("library_bpr")
    monkeypatch.setattr(library, "find_spec", lambda name: None if name == lacking else name)
    reason, advice = recommender.obstacle(recommender.OwnCase.model_construct(options=CASE))
    assert reason == f"package {lacking} is not installed, which method bpr_library needs"
    assert advice == "type: python3 -m tools.setup extras saros2019"
    assert recommender.obstacle(recommender.OwnCase.model_construct(options=CASE | {"method": "bpr"})) is None
    monkeypatch.setattr(library, "find_spec", lambda name: name)
    assert recommender.obstacle(recommender.OwnCase.model_construct(options=CASE)) is None


def test_with_the_library_cases_on_movielens_still_need_its_ratings(monkeypatch: pytest.MonkeyPatch) -> None:
    recommender, library, movielens = module("recommender"), module("library_bpr"), module("movielens")
    monkeypatch.setattr(library, "find_spec", lambda name: name)
    monkeypatch.setattr(movielens, "find_spec", lambda _: None)
    reason, _ = recommender.obstacle(recommender.OwnCase.model_construct(options=CASE | {"data": "movielens"}))
    assert "recbole is not installed" in reason
