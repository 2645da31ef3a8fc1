"""Random graphs of computations and messages on random clusters, in our event engine and in SimGrid.

Option: `graphs` of each launch, which the launch's seed draws. Event `difference`: of each graph, the largest
difference in the end of an operation, as a share of SimGrid's.
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from scaleproof.core.context import RankContext
from scaleproof.core.recorder import now
from scaleproof.programs.common import mark
from scaleproof.simulate.alpha_beta_fit import Segment
from scaleproof.simulate.cost_model import MessageCosts
from scaleproof.simulate.link_network import Network
from scaleproof.simulate.rank_graph.graph_run import run_graph
from scaleproof.simulate.rank_graph.random_graph import random_cluster, random_graph
from scaleproof.simulate.simgrid import foreign_run

DELAY_S = 20e-6
COSTS = MessageCosts((Segment(None, DELAY_S, 0.0),), 0.0)
RANKS, OPERATIONS = (2, 17), (20, 400)


def obstacle(case: Any) -> tuple[str, str] | None:
    """See harness/scaleproof/programs/own.py."""
    advice = "type `apt-get install libsimgrid-dev g++` as root"
    return None if foreign_run.HEADER.is_file() else ("SimGrid is not installed", advice)


def run(context: RankContext) -> None:
    """Compares the graphs."""
    generator = Random(context.seed)
    program = foreign_run.build(Path(context.folder))
    mark(context, "start", 0)
    for number in range(int(context.case.options["graphs"])):
        context.at(number, "graph")
        difference, moment = largest_difference(program, generator), now()
        context.recorder.add("difference", number, moment, moment, 0, difference)
    mark(context, "end", 0)


def largest_difference(program: Path, generator: Random) -> float:
    """Of the ends of a graph's operations, as a share of SimGrid's."""
    ranks = generator.randrange(*RANKS)
    network = Network(random_cluster(generator, ranks))
    graph = random_graph(generator, ranks, generator.randrange(*OPERATIONS))
    ours = run_graph(graph, network, range(ranks), COSTS).end
    theirs = foreign_run.run(program, graph, network, range(ranks), DELAY_S).end
    return float(np.max(np.abs(ours - theirs) / np.maximum(theirs, DELAY_S)))
