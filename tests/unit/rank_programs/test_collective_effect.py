"""The effect `Collective` in virtual time: by the case's algorithm, in groups, beside computing, and what is wrong."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
import pytest

from scaleproof.rank_programs.effects import AwaitAll, Collective, Compute, Effect, Receive, Send, Start
from scaleproof.rank_programs.graph.rank_graph import Builder
from scaleproof.rank_programs.rank_program import RankProgram
from scaleproof.simulate.alpha_beta_fit import Segment
from scaleproof.simulate.cost_model import MessageCosts
from scaleproof.simulate.link_network import MBIT, Network
from scaleproof.simulate.rank_graph.graph_run import run_graph
from scaleproof.spec.cluster import star
from scaleproof.spec.errors import SpecError
from tests.unit.rank_programs.test_virtual_run import RATE, ends, nothing, virtual

COSTS = MessageCosts((Segment(None, 0.25, 0.0),), gamma=0.01)
PAIRS: dict[str, tuple[tuple[int, ...], ...]] = {"pairs": ((0, 1), (2, 3)), "across": ((0, 2), (1, 3))}


@pytest.mark.parametrize("algorithm", ["ring", "halving_doubling", "tree"])
def test_it_takes_as_long_as_the_same_schedule_in_a_graph(algorithm: str) -> None:
    def main(program: RankProgram) -> Generator[Effect, Any, None]:
        yield Collective("all_reduce", np.ones(400, np.uint8), 3)

    run = virtual(*[main] * 4, costs=COSTS, buffer=1e6, algorithm=algorithm)
    took = [ends(run, rank, "end")[0] - ends(run, rank, "start")[0] for rank in range(4)]
    builder = Builder(4)
    call = builder.collective("all_reduce", 400.0, range(4), algorithm)
    for rank in range(4):
        builder.join(rank, call)
    network = Network(star("star", 4, RATE / MBIT, 0.0))
    assert took == pytest.approx(run_graph(builder.graph(), network, range(4), COSTS, buffer=1e6).end.tolist())
    assert [each.nbytes for each in run.events if each.event == "all_reduce"] == [400] * 4


def test_groups_have_collectives_of_their_own_with_the_same_tag() -> None:
    sums: dict[int, list[float]] = {}

    def main(program: RankProgram) -> Generator[Effect, Any, None]:
        values = [np.full(2, float(program.rank)) for _ in range(3)]
        started = []
        for lane, (group, value) in enumerate(zip(("pairs", "across", "all"), values, strict=True)):
            started.append((yield Start(Collective("all_reduce", value, 5, group), lane)))
        results = yield AwaitAll(tuple(started))
        assert all(one is other for one, other in zip(results, values, strict=True))
        sums[program.rank] = [float(value[0]) for value in values]

    virtual(*[main] * 4, buffer=1e6, groups=PAIRS)
    assert sums == {0: [1, 2, 6], 1: [1, 4, 6], 2: [5, 2, 6], 3: [5, 4, 6]}


def test_it_runs_beside_computing_and_takes_no_message_of_the_program() -> None:
    def main(program: RankProgram) -> Generator[Effect, Any, None]:
        value = np.ones(100, np.float64)
        started = yield Start(Collective("all_reduce", value, 0))
        yield Send(1 - program.rank, np.full(3, program.rank, np.uint8), 0)
        yield Compute(5.0)
        yield AwaitAll((started,))
        assert (yield Receive(1 - program.rank, 0)).value.tolist() == [1 - program.rank] * 3
        assert value.tolist() == [2.0] * 100

    run = virtual(main, main, buffer=1e6)
    assert ends(run, 0, "end")[0] - ends(run, 0, "start")[0] == pytest.approx(5.0)


def test_a_group_that_is_not_there_is_one_line() -> None:
    def main(program: RankProgram) -> Generator[Effect, Any, None]:
        yield Collective("all_reduce", np.ones(4), 1, "pair")

    with pytest.raises(
        SpecError, match=r"^programs/t.py: rank \d: group 'pair' of a collective .* did you mean 'pairs'"
    ):
        virtual(*[main] * 4, groups=PAIRS)
    with pytest.raises(SpecError, match=r"^programs/t.py: rank \d: rank \d is in no part of group 'pair'"):
        virtual(*[main] * 4, groups={"pair": ((1, 2),)})


def test_a_rank_that_never_joins_is_named_with_the_collective() -> None:
    def main(program: RankProgram) -> Generator[Effect, Any, None]:
        yield Collective("all_reduce", np.ones(4), 7)

    with pytest.raises(SpecError) as error:
        virtual(main, nothing, buffer=1e6)
    message = str(error.value)
    assert "rank 0 (is in all_reduce of 32 B, tag 7, with rank 1) waits for ever: rank 1 has ended" in message


def test_an_algorithm_that_knows_nodes_runs_over_all_ranks_only() -> None:
    def main(program: RankProgram) -> Generator[Effect, Any, None]:
        yield Collective("all_reduce", np.ones(4), 1, "pairs")

    with pytest.raises(SpecError, match="collective 'hierarchical' runs over all ranks, not in group 'pairs'"):
        virtual(*[main] * 4, algorithm="hierarchical", groups=PAIRS)
