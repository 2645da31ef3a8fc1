"""The programs of saros2019: blocks, gradients beside torch's, undone users, rankings by hand, bots, and data that are
broken."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from scaleproof.programs.own import load_entry
from scaleproof.spec.errors import SpecError
from scaleproof.spec.program_options import ProgramOptions

PROGRAMS = Path(__file__).resolve().parents[3] / "suites" / "saros2019" / "programs"
OPTIONS: dict[str, Any] = {
    "data": "planted", "method": "saros", "dim": 4, "rate": 0.1, "l2": 0.01, "initial": "positive", "momentum": 0,
    "least": 0, "most": 1, "fixed_most": 0, "order": "time", "split": "test", "bots": 0, "bot_blocks": 50,
    "target_clicks": 3, "users": 60, "items": 120, "mean": 30, "exponent": 0.8, "drift": 1.0,
}  # fmt: skip


def module(name: str) -> Any:
    load_entry(PROGRAMS, "recommender")
    return importlib.import_module(f"suite_programs.{name}")


def rows(*users: str, items: int = 20) -> Any:
    """Interactions of each user: C is a clicked item, and . one that was not. Items are numbered in order."""
    marks = "".join(users)
    user = np.repeat(np.arange(len(users)), [len(each) for each in users])
    clicked = np.array([mark == "C" for mark in marks])
    return module("interactions").Interactions(user, np.arange(len(marks)) % items, clicked, len(users), items)


def as_lists(blocks: Any) -> list[tuple[list[int], list[int]]]:
    return [
        (blocks.item[start:middle].tolist(), blocks.item[middle:end].tolist())
        for start, middle, end in zip(blocks.start, blocks.middle, blocks.end, strict=True)
    ]


def test_a_block_is_a_run_without_clicks_and_the_clicks_after_it() -> None:
    blocks = module("interactions").blocks_of(rows("C..CC.C.", "CC", ".C"))
    assert as_lists(blocks) == [([1, 2], [3, 4]), ([5], [6]), ([10], [11])]
    assert blocks.of_user.tolist() == [2, 0, 1]


def blocks_of_clicks(*users: str, seed: int = 1) -> Any:
    return module("interactions").blocks_of_clicks(rows(*users), np.random.default_rng(seed))


def test_the_authors_script_has_a_block_for_each_click_with_the_latest_run() -> None:
    blocks = blocks_of_clicks("..CC.C.", "CC", "..", ".C")
    assert as_lists(blocks) == [([0, 1], [2]), ([0, 1], [3]), ([4], [5]), ([11], [12])]
    assert blocks.of_user.tolist() == [3, 0, 0, 1], "a user without clicks or without other items is skipped"


def test_clicks_before_an_item_without_one_have_one_drawn_for_the_user() -> None:
    drawn = set()
    for seed in range(30):
        blocks = blocks_of_clicks(".C", "CC..C.", "C.", seed=seed)
        (_, early, same, late, last), others = as_lists(blocks), {4, 5, 7}
        assert early[0] == same[0] and set(early[0]) < others and (early[1], same[1]) == ([2], [3])
        assert (late, last) == (([4, 5], [6]), ([9], [8]))
        assert blocks.of_user.tolist() == [1, 3, 1]
        drawn |= set(early[0])
    assert drawn == {4, 5, 7}, "any of the user's items without a click, and none of another user"


@given(st.lists(st.text("C.", min_size=1, max_size=12), min_size=1, max_size=5))
@settings(max_examples=60, deadline=None)
def test_blocks_are_those_of_a_plain_loop(users: list[str]) -> None:
    expected, item = [], 0
    for marks in users:
        others: list[int] = []
        clicks: list[int] = []
        for mark in f"{marks}.":  # the last one closes a run of clicks
            if mark == ".":
                if others and clicks:
                    expected.append((others, clicks))
                others, clicks = ([item], []) if clicks or not others else ([*others, item], [])
            elif others:
                clicks = [*clicks, item]
            item += 1
        item -= 1
    found = module("interactions").blocks_of(rows(*users, items=100))
    assert as_lists(found) == expected


def test_the_test_part_is_later_than_the_training_part_of_each_user() -> None:
    interactions, random = module("interactions"), np.random.default_rng(1)
    user, moment = random.integers(0, 7, 200), random.random(200)
    item = np.argsort(np.argsort(moment))  # numbers items by their moment
    train, test = interactions.divided(interactions.in_order(user, item, random.random(200) < 0.5, moment, 200), 0.8)
    assert len(train) + len(test) == 200 and len(test) >= 40
    for one in range(7):
        assert train.item[train.user == one].max() < test.item[test.user == one].min()


def torch_block(user: Any, clicked: Any, others: Any, l2: float) -> Any:
    margins = (clicked @ user)[:, None] - (others @ user)[None, :]
    norms = (user**2).sum() + (clicked**2).sum(1)[:, None] + (others**2).sum(1)[None, :]
    return (torch.nn.functional.softplus(-margins) + l2 * norms).mean()


def test_the_gradient_of_a_block_is_torchs() -> None:
    random = np.random.default_rng(2)
    user, items = random.standard_normal(4), random.standard_normal((9, 4))
    clicked, others = np.array([1, 5, 7]), np.array([0, 8])
    found = np.empty(4), np.empty((3, 4)), np.empty((2, 4))
    loss = module("kernels").block_gradient(user, items, clicked, others, 0.03, *found)
    leaves: list[Any] = [torch.tensor(each, requires_grad=True) for each in (user, items[clicked], items[others])]
    expected = torch_block(leaves[0], leaves[1], leaves[2], 0.03)
    expected.backward()
    assert loss == pytest.approx(expected.item(), rel=1e-12)
    for ours, leaf in zip(found, leaves, strict=True):
        assert ours == pytest.approx(leaf.grad.numpy(), rel=1e-10)


def test_a_step_of_bpr_is_torchs() -> None:
    random, kernels = np.random.default_rng(3), module("kernels")
    users, items = random.standard_normal((2, 4)), random.standard_normal((6, 4))
    user, clicked = np.array([0, 1]), np.array([2, 3])
    first_other, other = np.array([0, 1, 3]), np.array([5, 0, 4])
    draws = np.array([[0.6, 0.7]])  # the second click, the second of user 1's two others: item 4
    leaves: list[Any] = [torch.tensor(each, requires_grad=True) for each in (users[1], items[3], items[4])]
    loss = torch.nn.functional.softplus(-(leaves[0] @ (leaves[1] - leaves[2])))
    (loss + 0.02 * sum((each**2).sum() for each in leaves)).backward()
    expected = [each.detach().numpy() - 0.1 * each.grad.numpy() for each in leaves]
    before = items.copy()
    found = kernels.bpr_pass(users, items, user, clicked, first_other, other, draws, 0.1, 0.02)
    assert found == pytest.approx(loss.item())
    for ours, wanted in zip((users[1], items[3], items[4]), expected, strict=True):
        assert ours == pytest.approx(wanted, rel=1e-10)
    assert (items[[0, 1, 2, 5]] == before[[0, 1, 2, 5]]).all()


def test_the_full_gradient_is_torchs_over_all_users() -> None:
    random, of = np.random.default_rng(4), rows("CC.C..", "...", ".C.CC")
    pairs = module("interactions").pairs_of(of)
    users, items = random.standard_normal((3, 4)), random.standard_normal((20, 4))
    gradients = np.zeros_like(users), np.zeros_like(items)
    loss, count = module("kernels").full_gradient(
        users, items, pairs.first_clicked, pairs.clicked, pairs.first_other, pairs.other, 0.03, *gradients
    )
    leaves: list[Any] = [torch.tensor(each, requires_grad=True) for each in (users, items)]
    total = sum(
        torch_block(leaves[0][u], leaves[1][of.item[mine & of.clicked]], leaves[1][of.item[mine & ~of.clicked]], 0.03)
        for u in (0, 2)
        for mine in [of.user == u]
    )
    assert isinstance(total, torch.Tensor)
    total.backward()
    assert (loss, count) == (pytest.approx(total.item()), pairs.count) and count == 9 + 6
    for ours, leaf in zip(gradients, leaves, strict=True):
        assert ours == pytest.approx(leaf.grad.numpy(), rel=1e-10)


def task_of(**options: Any) -> Any:
    return module("recommender").task_of(OPTIONS | options, 5)


def learned(passes: int = 2, **options: Any) -> Any:
    of, recommender = OPTIONS | options, module("recommender")
    task = recommender.task_of(of, 5)
    learner = module("learners").learner_of(of["method"], task.train, task.known, recommender.settings_of(of), 5)
    for _ in range(passes):
        learner.one_pass()
    return task, learner


@pytest.mark.parametrize("momentum", [0, 0.9])
def test_undone_users_leave_nothing_behind(momentum: float) -> None:
    """A pass that undoes some users ends as one that never meets them."""
    task, learner = learned(1, momentum=momentum)
    blocks, kernels = module("interactions").blocks_of(task.train), module("kernels")

    def passed(order: np.ndarray, undo: np.ndarray) -> list[np.ndarray]:
        first = [learner.users.copy(), learner.items.copy()]
        further = [np.zeros_like(each) for each in first]
        of = (blocks.first, blocks.start, blocks.middle, blocks.end, blocks.item)
        for _ in range(2):
            kernels.saros_pass(*first, *further, order, *of, 0.1, 0.01, momentum, undo)
        return [*first, *further]

    every, undo = np.arange(60), np.arange(60) % 3 == 0
    some, all_of_them = passed(every[~undo], np.zeros(60, bool)), passed(every, undo)
    assert all((one == other).all() for one, other in zip(some, all_of_them, strict=True))
    assert (passed(every, np.zeros(60, bool))[1] != some[1]).any()


def test_momentum_adds_up_steps_of_a_row() -> None:
    kernels, row, velocity = module("kernels"), np.zeros(1), np.zeros(1)
    for _ in range(3):
        kernels.step_row(row, velocity, np.ones(1), 0.1, 0.5)
    assert row[0] == pytest.approx(-0.1 * (1 + 1.5 + 1.75))


def test_every_way_learns_and_one_that_does_not_exist_is_named() -> None:
    for method in ("saros", "saros_clicks", "bpr", "bpr_b"):
        _, learner = learned(0, method=method, rate=1 if method == "bpr_b" else 0.1)
        losses = [learner.one_pass() for _ in range(8)]
        assert losses[-1] < losses[0] and learner.work.updates > 0, method
    with pytest.raises(SpecError, match=r"^options.method: unknown value 'bprr'; did you mean 'bpr'"):
        learned(method="bprr")
    for option, value in (("split", "late"), ("order", "age"), ("data", "netflix"), ("initial", "zero")):
        with pytest.raises(SpecError, match=f"^options.{option}: unknown value '{value}'; "):
            learned(2, **{option: value})


def test_a_pass_makes_an_update_for_each_block_and_counts_pairs() -> None:
    task, learner = learned(3)
    blocks = module("interactions").blocks_of(task.train)
    assert learner.work.updates == 3 * len(blocks.start)
    assert learner.work.pairs == 3 * int(((blocks.middle - blocks.start) * (blocks.end - blocks.middle)).sum())


def test_limits_are_quantiles_that_many_bots_move() -> None:
    few, many = task_of(bots=2), task_of(bots=20)
    interactions = module("interactions")
    for task, undone in ((few, True), (many, False)):
        counts = interactions.blocks_of(task.train).of_user
        _, most = interactions.limits(counts, 0.05, 0.95)
        assert (counts[task.known :] == 50).all() and (most < 50) is undone
    assert interactions.limits(np.arange(101), 0.05, 0.95) == (5, 95)
    low, high = interactions.limits(np.arange(101), 0, 1)
    assert low == 0 and high > 10**9


def test_bots_change_neither_the_first_factors_nor_the_order_of_real_users() -> None:
    (_, clean), (task, attacked) = learned(0), learned(0, bots=9)
    assert (attacked.users[: task.known] == clean.users).all() and (attacked.items == clean.items).all()
    order = attacked.order[attacked.order < task.known]
    assert (order == clean.order).all()


def test_bots_click_one_rare_item_after_another_one_each_time() -> None:
    task = task_of(bots=3)
    robots = task.train.part(task.train.user >= task.known)
    assert (robots.clicked == np.tile([False, True], 150)).all()
    assert (robots.item[robots.clicked] == task.target).all() and (robots.item[~robots.clicked] != task.target).all()
    clicks = np.bincount(task_of().train.item[task_of().train.clicked], minlength=120)
    assert abs(clicks[task.target] - 3) == np.abs(clicks - 3).min()


def test_planted_data_follow_the_seed_and_clicks_follow_taste_and_popularity() -> None:
    planted = module("planted")
    law = planted.Law(300, 400, 60.0, 0.8, 1.0)
    one, same, other = planted.draw(law, 1), planted.draw(law, 1), planted.draw(law, 2)
    assert (one.item == same.item).all() and (one.clicked == same.clicked).all() and len(other) != len(one)
    pair = one.user * one.items + one.item
    assert len(np.unique(pair)) == len(pair), "a user meets an item once"
    seen = np.bincount(one.item, minlength=400)
    assert seen[:20].mean() > 3 * seen[200:].mean()
    assert one.clicked[one.item < 20].mean() > one.clicked[one.item >= 200].mean() + 0.1
    assert 45 < len(one) / 300 < 75


@pytest.mark.parametrize(
    ("option", "value", "range_"),
    [
        ("users", 0, "whole number of at least 1"),
        ("items", 20, "whole number of at least 30"),
        ("mean", 5, "number from 10 to 40"),
        ("mean", 41, "number from 10 to 40"),
        ("mean", "many", "number from 10 to 40"),
        ("exponent", float("nan"), "number of at least 0"),
        ("bots", -1, "whole number of at least 0"),
        ("bots", 2.5, "whole number of at least 0"),
        ("target_clicks", -1, "whole number of at least 0"),
        ("dim", 0, "whole number of at least 1"),
        ("dim", float("inf"), "whole number of at least 1"),
        ("rate", -0.1, "number of at least 0"),
        ("momentum", 1.5, "number from 0 to 1"),
        ("most", 95, "number from 0 to 1"),
        ("fixed_most", -1, "whole number of at least 0"),
    ],
)
def test_an_option_out_of_range_is_named_in_one_line(option: str, value: Any, range_: str) -> None:
    with pytest.raises(SpecError) as raised:
        learned(0, **{option: value})
    assert str(raised.value) == f"options.{option}: {value!r} is no {range_}"


def test_a_missing_option_is_named_and_bots_without_blocks_are_refused() -> None:
    given = ProgramOptions("recommender", {name: value for name, value in OPTIONS.items() if name != "mean"})
    with pytest.raises(SpecError, match="^programs/recommender.py needs option 'mean' "):
        module("recommender").task_of(given, 5)
    with pytest.raises(SpecError, match="^options.bot_blocks: 0 is no whole number of at least 1$"):
        task_of(bots=1, bot_blocks=0)


def ranked(hits: str, relevant: int) -> Any:
    return module("ranking").Ranked(np.array([[mark == "x" for mark in hits]]), np.array([relevant]))


@pytest.mark.parametrize(
    ("hits", "relevant", "usual", "authors"),
    [
        ("x----", 1, 1, 1),
        ("x----", 3, 1 / 3, 1),  # two clicks were missed
        ("-x-x-", 2, (1 / 2 + 2 / 4) / 2, (1 / 2 + 2 / 4) / 2),
        ("-x---", 9, 1 / 2 / 5, 1 / 2),
        ("-----", 2, 0, 0),
        ("xxxxx", 40, 1, 1),
    ],
)
def test_average_precision_both_ways(hits: str, relevant: int, usual: float, authors: float) -> None:
    ranking = module("ranking")
    assert ranking.average_precision(ranked(hits, relevant), 5)[0] == pytest.approx(usual)
    assert ranking.average_precision(ranked(hits, relevant), 5, authors=True)[0] == pytest.approx(authors)


@pytest.mark.parametrize(
    ("hits", "relevant", "usual", "authors"),
    [
        ("x---------", 1, 1, 1),
        ("-x--------", 1, 1 / np.log2(3), 1),  # theirs gains as much at place 2 as at place 1
        ("-x--------", 2, (1 / np.log2(3)) / (1 + 1 / np.log2(3)), 1),  # and a click that is not among 10 costs nothing
        ("-x---x----", 2, (1 / np.log2(3)) / (1 + 1 / np.log2(3)), 1 / 2),  # one that is has its place in the ideal
        ("--x-x-----", 2, (1 / 2 + 1 / np.log2(6)) / (1 + 1 / np.log2(3)), (1 / np.log2(3) + 1 / np.log2(5)) / 2),
        ("x-xxxxxxxx", 9, 2.31753 / 2.94846, 2.56161 / 3.56161),
        ("-----xxxxx", 5, 0, 0),
        ("----------", 2, 0, 0),
    ],
)
def test_ndcg_both_ways(hits: str, relevant: int, usual: float, authors: float) -> None:
    ranking = module("ranking")
    assert ranking.ndcg(ranked(hits, relevant), 5)[0] == pytest.approx(usual, rel=1e-5)
    assert ranking.ndcg(ranked(hits, relevant), 5, authors=True)[0] == pytest.approx(authors, rel=1e-5)


def test_ndcg_is_that_of_scikit_learn() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    random, ranking = np.random.default_rng(6), module("ranking")
    of = rows("".join(random.choice(["C", "."], 15)), "".join(random.choice(["C", "."], 8)))
    scores = random.random(len(of))
    found = ranking.ndcg(ranking.ranked_own(of, scores, random), 5)
    for user in (0, 1):
        mine = of.user == user
        assert found[user] == pytest.approx(metrics.ndcg_score([of.clicked[mine]], [scores[mine]], k=5))


def test_among_all_items_those_of_the_training_part_are_no_candidates() -> None:
    interactions, ranking = module("interactions"), module("ranking")
    train = interactions.Interactions(np.array([0, 0]), np.array([0, 1]), np.array([True, False]), 1, 5)
    test = interactions.Interactions(np.array([0, 0]), np.array([2, 4]), np.array([True, True]), 1, 5)
    found = ranking.ranked_catalogue(train, test, np.array([[9, 8, 1, 2, 3.0]]), np.random.default_rng(1), places=3)
    assert found.hits.tolist() == [[True, False, True]] and found.relevant.tolist() == [2]


def test_a_place_counts_the_items_with_higher_scores() -> None:
    assert module("ranking").places_of(np.array([[1, 3, 2.0], [5, 3, 2.0]]), 1).tolist() == [1, 2]


def written(
    folder: Path, *lines: str, header: str = "user_id:token\titem_id:token\trating:float\ttimestamp:float"
) -> Path:
    file = folder / "ml.inter"
    file.write_text("\n".join([header, *lines]) + "\n")
    return file


def test_ratings_are_sorted_by_user_and_time_and_clicks_are_ratings_of_4(tmp_path: Path) -> None:
    found = module("movielens").read_movielens(written(tmp_path, "7\t3\t4\t20", "5\t3\t5\t9", "7\t1\t3\t10"))
    assert (found.users, found.items) == (2, 2)
    assert found.user.tolist() == [0, 1, 1] and found.item.tolist() == [1, 0, 1]
    assert found.clicked.tolist() == [True, False, True]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (("1\t2\t3\t4", "1\t3\tfive\t4"), r"ml.inter:3: rating:float: 'five' is not a number of 0 or more$"),
        (("1\t2\t3\t4", "1\t3\tnan\t4"), r"ml.inter:3: rating:float: 'nan' is not a number of 0 or more$"),
        (("1\t2\t3\t-4",), r"ml.inter:2: timestamp:float: '-4' is not a number of 0 or more$"),
        (("1\t2\t3\t4", "1\t3"), r"ml.inter:3: 2 columns; 4 are needed$"),
        (("1\t2\t3\t4", "2\t2\t3\t4", "1\t2\t5\t9"), r"ml.inter:4: this user has rated this item before$"),
        ((), r"ml.inter:1: no ratings below the header$"),
    ],
)
def test_broken_ratings_give_one_line_with_file_and_line(tmp_path: Path, lines: tuple[str, ...], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        module("movielens").read_movielens(written(tmp_path, *lines))


def test_a_missing_column_is_named_with_the_nearest_one(tmp_path: Path) -> None:
    file = written(tmp_path, "1\t2\t3\t4", header="user_id:token\titem_id:token\trating:float\ttime:float")
    with pytest.raises(SpecError, match=r"ml.inter:1: no column 'timestamp:float'; did you mean 'time:float'\?$"):
        module("movielens").read_movielens(file)


def test_without_the_package_cases_on_movielens_say_what_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    recommender, movielens = module("recommender"), module("movielens")
    monkeypatch.setattr(movielens, "find_spec", lambda _: None)
    case = recommender.OwnCase.model_construct(options={"data": "movielens"})
    reason, advice = recommender.obstacle(case)
    assert "recbole is not installed" in reason and advice == "type: python3 -m tools.setup extras saros2019"
    assert recommender.obstacle(recommender.OwnCase.model_construct(options={"data": "planted"})) is None
    with pytest.raises(SpecError, match="package recbole is not installed"):
        movielens.read_movielens()


def test_movielens_has_the_known_counts() -> None:
    movielens, interactions = module("movielens"), module("interactions")
    if movielens.installed_file() is None:
        pytest.skip("; ".join(movielens.obstacle()))
    every = movielens.read_movielens()
    assert (every.users, every.items, len(every), int(every.clicked.sum())) == (943, 1682, 100_000, 55_375)
    train, _ = interactions.divided(every, 0.8)
    assert len(interactions.blocks_of(train).start) == 14_879 and interactions.pairs_of(train).count == 2_784_484
    assert int(train.clicked.sum()) == 45_590, "143 of them by users who clicked everything"
    assert len(interactions.blocks_of_clicks(train, np.random.default_rng(1)).start) == 45_590 - 143
