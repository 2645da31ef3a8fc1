"""Graphs in GOAL, the form of LogGOPSim and ATLAHS (Hoefler, Siebert, Lumsdaine: Group Operation Assembly Language,
ICPP 2009): per rank `calc` in ns, `send` and `recv` in bytes, `requires` (the other has ended) and `irequires` (the
other has started)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from scaleproof.rank_programs.graph.expanded import expanded
from scaleproof.rank_programs.graph.rank_graph import NONE, Builder, Kind, RankGraph
from scaleproof.spec.errors import SpecError
from scaleproof.transports.mailbox import ANY

NANO = 1e-9
MOST_RANKS = 65_536
_LABEL = r"(?:(?P<label>[a-zA-Z]\w*)\s*:\s*)?"
_CALC = re.compile(rf"{_LABEL}calc\s+(?P<amount>\d+)(?:\s+cpu\s+(?P<cpu>\d+))?")
_MESSAGE = re.compile(
    rf"{_LABEL}(?P<kind>send|recv)\s+(?P<amount>\d+)\s*b\s+(?P<way>to|from)\s+(?P<peer>-1|\d+)"
    r"(?:\s+tag\s+(?P<tag>-1|\d+))?(?:\s+cpu\s+(?P<cpu>\d+))?(?:\s+nic\s+(?P<nic>\d+))?"
)
_WAIT = re.compile(r"(?P<later>[a-zA-Z]\w*)\s+(?P<how>i?requires)\s+(?P<earlier>[a-zA-Z]\w*)")
_RANK = re.compile(r"rank\s+(\d+)\s*\{")
_COUNT = re.compile(r"num_ranks\s+(\d+)")


def read_goal(path: Path) -> RankGraph:
    """The graph of a file. Raises SpecError, one line with file and line, for what is no GOAL; a receive of any tag is
    not supported."""
    reader = _Reader(path)
    for number, line in _lines(path):
        reader.take(number, line)
    return reader.graph()


def write_goal(path: Path, graph: RankGraph) -> None:
    """Writes a graph; a collective as its messages. GOAL has whole nanoseconds and bytes, and computing has a lane:
    what has none here gets one beside all others. SpecError for a graph with one-sided writes, which GOAL has not."""
    graph = expanded(graph)
    free = int(graph.lane.max(initial=0)) + 1
    puts = graph.of_kind(Kind.PUT)
    if len(puts):
        raise SpecError(f"{path}: {graph.name(puts[0])}: GOAL has no one-sided writes")
    waits = [*zip(graph.after, graph.before, ["requires"] * len(graph.after), strict=True)]
    waits += zip(graph.behind, graph.ahead, ["irequires"] * len(graph.behind), strict=True)
    across = next(((later, earlier) for later, earlier, _ in waits if graph.rank[later] != graph.rank[earlier]), None)
    if across is not None:
        raise SpecError(
            f"{path}: {graph.name(across[0])} waits for a node of rank {graph.rank[across[1]]}: GOAL has "
            "no edges between ranks"
        )
    of_rank: list[list[str]] = [[] for _ in range(graph.ranks)]
    for node in range(len(graph)):
        of_rank[graph.rank[node]].append(f"l{node}: {_statement(graph, node, free)}")
    for later, earlier, how in waits:
        of_rank[graph.rank[later]].append(f"l{later} {how} l{earlier}")
    parts = [f"num_ranks {graph.ranks}"]
    parts += ["\n".join([f"rank {rank} {{", *statements, "}"]) for rank, statements in enumerate(of_rank)]
    path.write_text("\n\n".join(parts) + "\n")


def _statement(graph: RankGraph, node: int, free: int) -> str:
    amount, lane = graph.amount[node], graph.lane[node] if graph.lane[node] != NONE else free
    cpu = f" cpu {lane}" if lane > 0 else ""
    if graph.kind[node] == Kind.COMPUTE:
        return f"calc {round(amount / NANO)}{cpu}"
    way = "send {}b to {}" if graph.kind[node] == Kind.SEND else "recv {}b from {}"
    return f"{way.format(round(amount), graph.peer[node])} tag {graph.tag[node]}"


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Statements with their line numbers, without comments."""
    try:
        text = path.read_text()
    except OSError as error:
        raise SpecError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise SpecError(f"{path}: no text file") from None
    text = re.sub(r"/\*.*?\*/", lambda comment: "\n" * comment[0].count("\n"), text, flags=re.DOTALL)
    for number, line in enumerate(text.splitlines(), 1):
        statement = line.partition("//")[0].strip()
        if statement:
            yield number, statement


class _Reader:
    """Takes statement after statement."""

    def __init__(self, path: Path) -> None:
        self._path, self._rank, self._ranks = path, NONE, 0
        self._builder: Builder | None = None
        self._labels: dict[str, int] = {}
        self._waits: list[tuple[int, str, str, str]] = []

    def take(self, number: int, line: str) -> None:
        """One statement."""
        if matched := _COUNT.fullmatch(line):
            self._begin(number, int(matched[1]))
        elif self._builder is None:
            raise self._wrong(number, "the file begins with `num_ranks N`")
        elif matched := _RANK.fullmatch(line):
            self._open(number, int(matched[1]))
        elif line == "}":
            self._close()
        elif self._rank == NONE:
            raise self._wrong(number, f"{line!r} stands outside of a rank; expected `rank R {{`")
        elif matched := _CALC.fullmatch(line):
            node = self._builder.compute(self._rank, int(matched["amount"]) * NANO, lane=int(matched["cpu"] or 0))
            self._name(number, matched["label"], node)
        elif matched := _MESSAGE.fullmatch(line):
            self._message(number, matched)
        elif matched := _WAIT.fullmatch(line):
            self._waits.append((number, matched["later"], matched["how"], matched["earlier"]))
        else:
            raise self._wrong(number, f"{line!r} is no statement; there are calc, send, recv, requires and irequires")

    def graph(self) -> RankGraph:
        """The graph, when all has been taken."""
        if self._builder is None:
            raise SpecError(f"{self._path}: no `num_ranks N` in it")
        if self._rank != NONE:
            raise SpecError(f"{self._path}: rank {self._rank} has no closing bracket")
        return self._builder.graph()

    def _begin(self, number: int, ranks: int) -> None:
        if not 0 < ranks <= MOST_RANKS:
            raise self._wrong(number, f"{ranks} ranks; there are 1 to {MOST_RANKS}")
        self._ranks, self._builder = ranks, Builder(ranks)

    def _open(self, number: int, rank: int) -> None:
        if self._rank != NONE:
            raise self._wrong(number, f"rank {self._rank} has no closing bracket")
        if rank >= self._ranks:
            raise self._wrong(number, f"rank {rank} of {self._ranks}; ranks are numbered from 0")
        self._rank = rank

    def _close(self) -> None:
        assert self._builder is not None
        for number, later, how, earlier in self._waits:
            for label in (later, earlier):
                if label not in self._labels:
                    raise self._wrong(number, f"rank {self._rank} has no label {label!r}")
            wait = self._builder.wait if how == "requires" else self._builder.wait_for_start
            wait(self._labels[later], self._labels[earlier])
        self._rank, self._labels, self._waits = NONE, {}, []

    def _message(self, number: int, matched: re.Match[str]) -> None:
        assert self._builder is not None
        sends, peer, tag = matched["kind"] == "send", int(matched["peer"]), int(matched["tag"] or 0)
        if sends != (matched["way"] == "to"):
            raise self._wrong(number, "a message is sent `to` a rank and received `from` one")
        if tag < 0 or (sends and peer < 0):
            raise self._wrong(number, "-1 stands for any rank that a receive takes from; any tag is not supported")
        add = self._builder.send if sends else self._builder.receive
        node = add(self._rank, ANY if peer < 0 else peer, int(matched["amount"]), tag=tag)
        self._name(number, matched["label"], node)

    def _name(self, number: int, label: str | None, node: int) -> None:
        if label is None:
            return
        if label in self._labels:
            raise self._wrong(number, f"label {label!r} is there twice in rank {self._rank}")
        self._labels[label] = node

    def _wrong(self, number: int, text: str) -> SpecError:
        return SpecError(f"{self._path}:{number}: {text}")
