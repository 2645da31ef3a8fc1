"""Graphs of rank programs in files: GOAL, or a folder with a Chakra trace."""

from __future__ import annotations

from pathlib import Path

from scaleproof.rank_programs.graph.goal import read_goal, write_goal
from scaleproof.rank_programs.graph.rank_graph import RankGraph
from scaleproof.simulate.chakra.chakra_graph import graph_of, trace_of
from scaleproof.simulate.chakra.chakra_trace import read_trace, write_trace
from scaleproof.spec.errors import SpecError

GOAL = ".goal"


def read_graph(path: Path, algorithm: str = "ring") -> RankGraph:
    """The graph of a GOAL file or of a trace. `algorithm`: of a trace's collectives."""
    return graph_of(read_trace(path), algorithm, str(path)) if path.is_dir() else read_goal(path)


def write_graph(path: Path, graph: RankGraph, name: str) -> None:
    """Writes GOAL where the path ends so, else a folder with a trace. `name`: of the graph in messages."""
    if path.suffix == GOAL:
        write_goal(path, graph)
        return
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise SpecError(f"{path}: is there already; give a new folder, or a file that ends in {GOAL}")
    write_trace(path, "graph", trace_of(graph, name))
