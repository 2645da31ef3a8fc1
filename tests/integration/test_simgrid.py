"""The event engine against SimGrid, which others wrote: random graphs on random clusters end at the same times."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest

from scaleproof.simulate.alpha_beta_fit import Segment
from scaleproof.simulate.collective_schedules import pattern_of
from scaleproof.simulate.cost_model import MessageCosts
from scaleproof.simulate.link_network import Network
from scaleproof.simulate.rank_graph.collective_graph import collective_graph
from scaleproof.simulate.rank_graph.graph_run import run_graph
from scaleproof.simulate.rank_graph.random_graph import random_cluster, random_graph
from scaleproof.simulate.simgrid import foreign_run
from scaleproof.spec.cluster import Cluster, star

pytestmark = pytest.mark.skipif(
    not foreign_run.HEADER.is_file(), reason="SimGrid is not installed: apt-get install libsimgrid-dev"
)
DELAY_S = 20e-6
COSTS = MessageCosts((Segment(None, DELAY_S, 0.0),), 0.0)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return foreign_run.build(tmp_path_factory.mktemp("simgrid"))


def largest_difference(program: Path, seed: int, ours: Cluster | None = None) -> float:
    """Of the end of an operation, a share. `ours`: the cluster that our engine has instead."""
    generator = Random(seed)
    ranks = generator.randrange(2, 17)
    cluster = random_cluster(generator, ranks)
    graph = random_graph(generator, ranks, generator.randrange(20, 400))
    mine = run_graph(graph, Network(ours or cluster), range(ranks), COSTS).end
    theirs = foreign_run.run(program, graph, Network(cluster), range(ranks), DELAY_S).end
    return float(np.max(np.abs(mine - theirs) / np.maximum(theirs, DELAY_S)))


@pytest.mark.parametrize("seed", range(20))
def test_random_graphs_end_as_in_simgrid(program: Path, seed: int) -> None:
    assert largest_difference(program, seed) < 1e-9


def test_a_ring_ends_as_in_simgrids_fastest_way(program: Path) -> None:
    network, graph = Network(star("ring", 8, 1000.0, 0.0)), collective_graph(pattern_of("ring", "all_reduce", 8), 1e6)
    theirs = foreign_run.fastest(program, graph, network, range(8), DELAY_S).end
    assert run_graph(graph, network, range(8), COSTS).seconds == pytest.approx(theirs[0], rel=1e-9)


def test_links_that_are_2_per_cent_slower_are_noticed(program: Path) -> None:
    generator = Random(3)
    cluster = random_cluster(generator, generator.randrange(2, 17))
    slower = replace(cluster, links=tuple(replace(link, mbit=(link.mbit or 0) / 1.02) for link in cluster.links))
    assert largest_difference(program, 3, slower) > 0.005
