"""Runs a graph of rank programs in SimGrid's fluid model, with the same rates and delays as in ours."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from scaleproof.rank_programs.graph.rank_graph import Kind, RankGraph
from scaleproof.simulate.link_network import Network
from scaleproof.spec.errors import SpecError

HEADER = Path("/usr/include/simgrid/s4u.hpp")
SOURCE = Path(__file__).with_name("graph.cpp")
MODEL = ("--cfg=network/model:CM02", "--cfg=network/TCP-gamma:0", "--cfg=network/crosstraffic:0")
"""Max-min fair rates without SimGrid's corrections for TCP."""
EXACT, LAZY = "--cfg=network/optim:Full", "--cfg=network/optim:Lazy"
"""All rates anew at every event; SimGrid's default, which computes only some anew."""
TIMEOUT_S = 300.0


@dataclass(frozen=True)
class ForeignRun:
    """When each node of a graph ended, in s; both nodes of a message end together. `wall_s`: of SimGrid's loop."""

    end: np.ndarray
    wall_s: float


def build(folder: Path) -> Path:
    """Compiles the program, in about 3 s. Raises SpecError where SimGrid or a compiler is missing."""
    program = folder / "graph"
    if not HEADER.is_file():
        raise SpecError("SimGrid is not installed: type `apt-get install libsimgrid-dev g++` as root")
    command = ["g++", "-std=c++17", "-O2", str(SOURCE), "-o", str(program), "-lsimgrid"]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    if built.returncode:
        raise SpecError(f"{SOURCE.name}: g++ failed: {built.stderr.strip()[-400:]}")
    return program


def run(
    program: Path, graph: RankGraph, network: Network, nodes: Sequence[int], delay_s: float, optim: str = EXACT
) -> ForeignRun:
    """Every send meets its receive, as with a buffer of 0 bytes. `delay_s`: of every message. SimGrid weighs flows by
    the delay of their routes, so all have the same; the first link of a route has it, so each node needs a link of its
    own. Computations of a rank must not overlap: SimGrid would share its core among them. Raises SpecError when
    SimGrid fails."""
    activity = _activities(graph)
    first, *rows = _printed(
        [str(program), *MODEL, optim], [*_platform(network, nodes, delay_s), *_lines(graph, nodes, activity)]
    )
    ends = np.array([float(row.split()[1]) for row in rows])
    return ForeignRun(ends[activity], float(first.split()[1]))


def fastest(program: Path, graph: RankGraph, network: Network, nodes: Sequence[int], delay_s: float) -> ForeignRun:
    """The same in SimGrid's fastest way for long graphs: an actor per node of the cluster, which goes through its part
    in the order of the graph, and lazily computed rates. `end` is that of all. Raises SpecError when SimGrid fails."""
    lines = [*_platform(network, nodes, delay_s), *_lines(graph, nodes, _activities(graph))]
    wall, end = _printed([str(program), "actors", *MODEL, LAZY], lines)
    return ForeignRun(np.array([float(end.split()[1])]), float(wall.split()[1]))


def _printed(command: Sequence[str], lines: Sequence[str]) -> list[str]:
    text = "\n".join(lines) + "\n"
    quiet = [*command, "--log=root.thresh:error"]
    ran = subprocess.run(quiet, input=text, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
    if ran.returncode:
        raise SpecError(f"SimGrid ended with code {ran.returncode}: {ran.stderr.strip()[:400]}")
    return ran.stdout.splitlines()


def _platform(network: Network, nodes: Sequence[int], delay_s: float) -> Iterator[str]:
    pairs = [(one, other) for one in sorted(set(nodes)) for other in sorted(set(nodes)) if one != other]
    routes = {pair: network.route(*pair) for pair in pairs}
    first = {route[0] for route in routes.values()}
    if any(set(route[1:]) & first for route in routes.values()):
        raise SpecError("a message passes the first link of another one: every node needs a link of its own")
    yield f"hosts {network.nodes}"
    for number, capacity in enumerate(network.capacities.tolist()):
        yield f"link {capacity!r} {delay_s if number in first else 0.0!r}"
    for (one, other), route in routes.items():
        yield f"route {one} {other} {' '.join(map(str, route))}"


def _activities(graph: RankGraph) -> np.ndarray:
    """The number of the computation or message that each node belongs to. The n-th send of a tag between two ranks
    meets the n-th receive."""
    if len(graph.collectives):
        raise SpecError("SimGrid gets the messages of collectives: expand the graph")
    numbers, waiting = np.full(len(graph), -1), dict[tuple[int, ...], list[int]]()
    count = 0
    for node in range(len(graph)):
        rank, peer, tag = int(graph.rank[node]), int(graph.peer[node]), int(graph.tag[node])
        if graph.kind[node] in (Kind.COMPUTE, Kind.PUT):
            numbers[node], count = count, count + 1
            continue
        sends = graph.kind[node] == Kind.SEND
        met = waiting.setdefault((rank, peer, tag, not sends) if sends else (peer, rank, tag, not sends), [])
        if met:
            numbers[node] = numbers[met.pop(0)]
            continue
        numbers[node], count = count, count + 1
        waiting.setdefault((rank, peer, tag, sends) if sends else (peer, rank, tag, sends), []).append(node)
    return numbers


def _lines(graph: RankGraph, nodes: Sequence[int], activity: np.ndarray) -> Iterator[str]:
    for node in np.unique(activity, return_index=True)[1].tolist():
        place, peer = nodes[graph.rank[node]], nodes[graph.peer[node]]
        if graph.kind[node] == Kind.COMPUTE:
            yield f"compute {place} {float(graph.amount[node])!r}"
        else:
            source, destination = (peer, place) if graph.kind[node] == Kind.RECEIVE else (place, peer)
            yield f"message {source} {destination} {float(graph.amount[node])!r}"
    pairs = np.unique(np.stack([activity[graph.before], activity[graph.after]], axis=1), axis=0)
    for before, after in pairs.tolist():
        yield f"edge {before} {after}"
