"""The program of a graph of the user's own. Option `graph`: path of its GOAL file, or of the folder of its trace."""

from __future__ import annotations

from pathlib import Path

from scaleproof.rank_programs.graph.graph_program import GraphProgram
from scaleproof.rank_programs.graph.rank_graph import RankGraph
from scaleproof.simulate.rank_graph.graph_file import read_graph
from scaleproof.spec.case import OwnCase


class GraphFile(GraphProgram):
    """See GraphProgram."""

    @classmethod
    def graph_of(cls, case: OwnCase) -> RankGraph:
        """See GraphProgram."""
        return read_graph(Path(str(case.options["graph"])))


PROGRAM = GraphFile
