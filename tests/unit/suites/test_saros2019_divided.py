"""Users over ranks in saros2019: both exchanges end with the same factors, and send what a plain count says."""

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
from tests.unit.suites.test_saros2019_programs import OPTIONS, PROGRAMS

PASSES, DIM, ITEMS, USERS = 2, 4, 120, 60


def ended(folder: Path, ranks: int, transport: str, exchange: str, round_users: int) -> list[dict[str, Any]]:
    """What each rank ends with: factors of items, and bytes sent."""
    program: Any = load_entry(PROGRAMS, "divided_users")
    case = case_from(
        {
            "suite": "saros2019",
            "experiment": "e",
            "arm": "a",
            "program": "own",
            "entry": "divided_users",
            "ranks": ranks,
            "transport": transport,
            "collective": "ring",
            "iterations": PASSES,
            "warmup": 0,
            "options": OPTIONS | {"exchange": exchange, "round_users": round_users},
        }
    )

    def body(context: RankContext) -> None:
        made: list[Any] = []
        worker = program.Worker

        def kept(*arguments: Any) -> Any:
            made.extend((worker(*arguments), len(program.kernels.saros_pass.signatures)))
            return made[0]

        program.Worker = kept
        program.run(context)
        rows = context.recorder._rows[: context.recorder._count]
        values = {row["event"].decode(): float(row["value"]) for row in rows}
        assert len(program.kernels.saros_pass.signatures) == made[1], "nothing is compiled within a pass"
        sketch = [float(row["value"]) for row in rows if row["event"] == b"items_sketch"]
        found = {"items": made[0].items.tolist(), "users": made[0].users.tolist(), "values": values, "sketch": sketch}
        (folder / f"{context.rank}.json").write_text(json.dumps(found))

    assert run_ranks(case, body) == [""] * ranks
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(ranks)]


@pytest.mark.parametrize(("ranks", "transport", "round_users"), [(2, "tcp", 4), (2, "shm", 30), (3, "tcp", 7)])
def test_all_reduce_and_servers_end_with_the_same_factors(
    tmp_path: Path, ranks: int, transport: str, round_users: int
) -> None:
    reduced = ended(tmp_path, ranks, transport, "all_reduce", round_users)
    served = ended(tmp_path, ranks, transport, "server", round_users)
    for name in ("items", "users"):
        every = np.array([one[name] for one in (*reduced, *served)])
        assert np.abs(every - every[0]).max() < 1e-5
    sketches = np.array([one["sketch"] for one in (*reduced, *served)])
    assert np.abs(sketches - sketches[0]).max() < 1e-3 and np.abs(sketches[0]).min() > 0
    rounds = PASSES * -(-(USERS // ranks) // round_users)
    own = [one["values"]["sent"] for one in reduced]
    assert sum(own) == rounds * 2 * (ranks - 1) * ITEMS * DIM * 4
    met = sum(one["values"]["rows_met"] for one in served)
    sent = sum(one["values"]["sent"] for one in served)
    counts, of_a_row = rounds * ranks * (ranks - 1) * 8, 8 + 2 * DIM * 4
    assert met * of_a_row * 0.5 * (ranks - 1) / ranks < sent - counts < met * of_a_row
    assert (sent - counts) % of_a_row == 0, "each row that another rank serves costs its id and two rows"


def test_sketches_are_as_far_apart_as_the_factors() -> None:
    divided: Any = load_entry(PROGRAMS, "divided_users")
    random = np.random.default_rng(1)
    items = random.standard_normal((50, 4)).astype(np.float32)
    ratios = []
    for scale in (1e-4, 1e-2, 1.0):
        moved = items + scale * random.standard_normal((50, 4)).astype(np.float32)
        apart = np.sqrt(((divided.sketch(moved) - divided.sketch(items)) ** 2).mean())
        ratios.append(apart / np.linalg.norm(moved - items))
    assert ratios == pytest.approx([1, 1, 1], abs=0.4)
    swapped = divided.sketch(items[::-1])
    assert np.abs(swapped - divided.sketch(items)).max() > 1, "equal norms do not make equal factors"


def test_one_rank_learns_as_the_plain_program_does(tmp_path: Path) -> None:
    (found,) = ended(tmp_path, 1, "tcp", "alone", 8)
    recommender = importlib.import_module("suite_programs.recommender")
    learners = importlib.import_module("suite_programs.learners")
    seed = 0
    task = recommender.task_of(OPTIONS, seed)
    learner = learners.learner_of("saros", task.train, task.known, recommender.settings_of(OPTIONS), seed)
    for _ in range(PASSES):
        learner.one_pass()
    assert np.array(found["items"]) == pytest.approx(learner.items, abs=1e-4)
    assert found["values"]["sent"] == 0
    assert found["values"]["map_at_5"] == pytest.approx(
        recommender.quality_of(task, learner.scores(task.known), seed)["map_at_5"], abs=0.02
    )


def test_items_met_are_those_of_the_blocks_of_these_users() -> None:
    load_entry(PROGRAMS, "divided_users")
    divided, interactions = (
        importlib.import_module(f"suite_programs.{name}") for name in ("divided_users", "interactions")
    )
    clicked = np.array([False, True, False, True, True, True, False, True])
    user = np.array([0, 0, 0, 0, 1, 1, 2, 2])
    blocks = interactions.blocks_of(interactions.Interactions(user, np.array([5, 3, 5, 1, 0, 2, 9, 8]), clicked, 3, 10))
    assert divided.items_met(blocks, np.array([2, 0])).tolist() == [1, 3, 5, 8, 9]
    assert divided.items_met(blocks, np.array([1])).tolist() == []


def test_a_way_that_does_not_fit_the_ranks_is_named() -> None:
    load_entry(PROGRAMS, "divided_users")
    divided = importlib.import_module("suite_programs.divided_users")

    class Two:
        world_size = 2

    with pytest.raises(ValueError, match="options.exchange: unknown value 'gossip'; known: alone, all_reduce, server"):
        divided._exchange("gossip", Two(), np.zeros((1, 1)))
    with pytest.raises(ValueError, match="options.exchange: 'alone' does not go with 2 ranks"):
        divided._exchange("alone", Two(), np.zeros((1, 1)))
