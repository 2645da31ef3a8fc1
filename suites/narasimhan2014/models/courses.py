"""How a solution on one process went, and what it would take on many: from kernel elements of active samples, and
messages of a stated network."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise

import numpy as np
import pandas as pd

from scaleproof.claims.finished_launch import SECOND, times_count
from scaleproof.claims.sample_columns import columns
from scaleproof.core.record_schema import Record
from scaleproof.spec.case import AnyCase, OwnCase
from scaleproof.spec.cluster import load_cluster

from .processes import alone_s
from .savings import JUDGED
from .variants import ORIGINAL, notes, seconds

LOOKS = (1, 16, 64, 256, 1024, 4096)
"""Processes that are predicted; 4,096 is the most of the paper's successor."""
SCALED = 1 << 21
"""Samples that predictions are for, of the data that ran: with those of the run a process would have less than one."""
REDUCED_BYTES, COUNT_BYTES = 16, 8
HEAD, ROW = 5, 3
"""Numbers of 8 bytes beside columns and values, in a broadcast row and in a row of a ring's block."""
FAST, FAST_SOFTWARE_S = "fdr", 1e-6
"""The network of predictions, a file of clusters/, and the software of one of its messages, chosen by us."""


@dataclass(frozen=True, slots=True)
class Network:
    """`message_s`: of a message without bytes; `byte_s`: of each byte."""

    message_s: float
    byte_s: float

    def seconds(self, nbytes: float) -> float:
        """Of one message."""
        return self.message_s + nbytes * self.byte_s


FREE = Network(0.0, 0.0)


@cache
def fast_network() -> Network:
    """Two links, to the switch and from it, and the software."""
    link = load_cluster(FAST, 2).links[0]
    assert link.mbit is not None
    return Network(2 * link.delay_ms * 1e-3 + FAST_SOFTWARE_S, 8 / (link.mbit * 1e6))


@dataclass(frozen=True, slots=True)
class Cost:
    """Of a process, s: `own_s`: of an iteration, without kernel elements and messages; `element_s`: of an element."""

    own_s: float
    element_s: float


@dataclass(frozen=True, slots=True)
class Course:
    """How a solution went. `active`: iteration from which so many samples were active; `reconstructions`: samples that
    came back, and samples with alpha > 0; `longest`: most values of a row; `looks`: processes whose shares say when
    samples are looked through, 0: they are not."""

    iterations: float
    active: tuple[tuple[float, float], ...]
    reconstructions: tuple[tuple[float, float], ...]
    longest: int
    cost: Cost
    looks: int = 0

    def scaled(self, factor: float) -> Course:
        """For so many times as many samples: as many iterations for each, and the same shares active."""
        return replace(
            self,
            iterations=factor * self.iterations,
            active=tuple((factor * since, factor * count) for since, count in self.active),
            reconstructions=tuple((factor * back, factor * used) for back, used in self.reconstructions),
        )

    def iteration_s(self, network: Network, processes: int, active: float) -> float:
        """Kernel elements of the own rows, an all-reduce, two broadcasts, and where it looks one more all-reduce, each
        in log2 rounds."""
        rounds = math.ceil(math.log2(processes))
        row = 8 * (HEAD + 2 * self.longest)
        look = min(1.0, self.looks / max(active, 1.0)) * network.seconds(COUNT_BYTES)
        messages = network.seconds(REDUCED_BYTES) + 2 * network.seconds(row) + look
        return self.cost.own_s + 2 * active / processes * self.cost.element_s + rounds * messages

    def reconstruction_s(self, network: Network, processes: int) -> float:
        """All of them: kernel elements of the own rows, and blocks of rows around a ring."""
        total = 0.0
        for back, used in self.reconstructions:
            block = 8 * used / processes * (ROW + 2 * self.longest)
            total += back * used / processes * self.cost.element_s + (processes - 1) * network.seconds(block)
        return total

    def seconds(self, network: Network, processes: int) -> float:
        """Of the whole solution."""
        ends = [*self.active, (self.iterations, 0.0)]
        spans = [(after - since, count) for (since, count), (after, _) in pairwise(ends)]
        iterations = sum(span * self.iteration_s(network, processes, count) for span, count in spans)
        return iterations + self.reconstruction_s(network, processes)


def looks_of(case: AnyCase, name: str) -> int:
    """Processes whose shares say when a variant looks through its samples."""
    if name == ORIGINAL or not isinstance(case, OwnCase):
        return 0
    return int(name.partition("_of_")[2] or case.options["parts"])


def of_processes(case: AnyCase, processes: int) -> str:
    """The heuristic with the looks of so many processes."""
    parts = case.options.get("parts") if isinstance(case, OwnCase) else None
    return JUDGED if parts == processes else f"{JUDGED}_of_{processes}"


def course_of(record: Record, samples: pd.DataFrame, name: str, cost: Cost) -> Course | None:
    """Of a variant."""
    facts = record.ranks[0].facts if record.ranks else {}
    curve, iterations = facts.get("curves", {}).get(name), notes(record, samples, "iterations").get(name)
    if curve is None or iterations is None:
        return None
    active, back = (tuple((float(a), float(b)) for a, b in curve[key]) for key in ("active", "reconstructions"))
    longest, looks = int(facts["data"]["longest"]), looks_of(record.case, name)
    return Course(iterations, active, back, longest, cost, looks)


def cost_of(record: Record, samples: pd.DataFrame, name: str) -> Cost | None:
    """From what one process takes for two numbers of samples: a variant on all, and a quarter without shrinking. None
    where noise leaves no time for an element."""
    iterations, part = notes(record, samples, "iterations").get(name), _part(record, samples)
    whole = _whole(record, samples, name)
    if iterations is None or part is None or whole is None:
        return None
    counts = np.array([[iterations, whole[1]], [part[0], part[2]]])
    if np.linalg.matrix_rank(counts) < 2:
        return None
    own_s, element_s = (float(each) for each in np.linalg.solve(counts, [whole[0], part[1]]))
    return Cost(max(own_s, 0.0), element_s) if element_s > 0 else None


def _whole(record: Record, samples: pd.DataFrame, name: str) -> tuple[float, float] | None:
    """Seconds and kernel elements of one process, on all samples."""
    if record.case.ranks > 1:
        return alone_s(record, samples, name)
    times, elements = seconds(record, samples), notes(record, samples, "elements")
    return (times[name], elements[name]) if name in times and name in elements else None


def _part(record: Record, samples: pd.DataFrame) -> tuple[float, float, float] | None:
    """Iterations, seconds and kernel elements on a quarter of the samples."""
    rows = columns(record, samples)
    chosen, iterations = rows.of("part"), list(notes(record, samples, "part_iterations").values())
    if not len(chosen) or not iterations or not times_count(record):
        return None
    row = chosen[0]
    return iterations[0], float(rows.end[row] - rows.start[row]) / SECOND, float(rows.value[row])


@dataclass(frozen=True, slots=True)
class Prediction:
    """Courses of a solution without shrinking and of one with it, for SCALED samples, on so many processes."""

    original: Course
    shrunk: Course
    processes: int

    def speedup(self) -> float:
        """Over one process without shrinking."""
        return self.original.seconds(fast_network(), 1) / self._shrunk_s()

    def gain(self) -> float:
        """Of shrinking."""
        return self.original.seconds(fast_network(), self.processes) / self._shrunk_s()

    def share(self) -> float:
        """Of reconstructions in the time."""
        return self.shrunk.reconstruction_s(fast_network(), self.processes) / self._shrunk_s()

    def _shrunk_s(self) -> float:
        return self.shrunk.seconds(fast_network(), self.processes)


def prediction_of(record: Record, samples: pd.DataFrame, processes: int) -> Prediction | None:
    """From a launch on one rank, with the looks of so many processes."""
    cost = cost_of(record, samples, ORIGINAL) if record.case.ranks == 1 else None
    if cost is None:
        return None
    names = (ORIGINAL, of_processes(record.case, processes))
    courses = [course_of(record, samples, name, cost) for name in names]
    if courses[0] is None or courses[1] is None:
        return None
    factor = SCALED / courses[0].active[0][1]
    return Prediction(courses[0].scaled(factor), courses[1].scaled(factor), processes)
