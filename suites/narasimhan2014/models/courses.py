"""How a solution on one process went, and what it would take on many: from kernel elements of active samples, and
messages of a stated network."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise

import pandas as pd

from scaleproof.core.record_schema import Record

from .savings import JUDGED
from .variants import ORIGINAL, notes, seconds

MOST = 4096
"""Processes: the most of the paper's successor."""
SCALED = 1 << 21
"""Samples that predictions are for, of the data that ran: with those of the run a process would have less than one."""
REDUCED_BYTES = 16
HEAD, ROW = 5, 3
"""Numbers of 8 bytes beside columns and values, in a broadcast row and in a row of a ring's block."""


@dataclass(frozen=True, slots=True)
class Network:
    """`message_s`: of a message without bytes; `byte_s`: of each byte."""

    message_s: float
    byte_s: float

    def seconds(self, nbytes: float) -> float:
        """Of one message."""
        return self.message_s + nbytes * self.byte_s


FDR = Network(2e-6, 8 / 54.55e9)
"""1 us from node to node and 54.55 Gbit/s (clusters/fdr.yaml), and 1 us of software, chosen by us."""


@dataclass(frozen=True, slots=True)
class Course:
    """How a solution went. `active`: iteration from which so many samples were active; `reconstructions`: samples that
    came back, and samples with alpha > 0; `longest`: most values of a row; `element_s`: of a kernel element."""

    iterations: float
    active: tuple[tuple[float, float], ...]
    reconstructions: tuple[tuple[float, float], ...]
    longest: int
    element_s: float

    def scaled(self, factor: float) -> Course:
        """For so many times as many samples: as many iterations for each, and the same shares active."""
        return replace(
            self,
            iterations=factor * self.iterations,
            active=tuple((factor * since, factor * count) for since, count in self.active),
            reconstructions=tuple((factor * back, factor * used) for back, used in self.reconstructions),
        )

    def iteration_s(self, network: Network, processes: int, active: float) -> float:
        """Kernel elements of the own rows, an all-reduce, two broadcasts, each in log2 rounds."""
        rounds = math.ceil(math.log2(processes))
        row = 8 * (HEAD + 2 * self.longest)
        messages = network.seconds(REDUCED_BYTES) + 2 * network.seconds(row)
        return 2 * active / processes * self.element_s + rounds * messages

    def reconstruction_s(self, network: Network, processes: int) -> float:
        """All of them: kernel elements of the own rows, and blocks of rows around a ring."""
        total = 0.0
        for back, used in self.reconstructions:
            block = 8 * used / processes * (ROW + 2 * self.longest)
            total += back * used / processes * self.element_s + (processes - 1) * network.seconds(block)
        return total

    def seconds(self, network: Network, processes: int) -> float:
        """Of the whole solution."""
        ends = [*self.active, (self.iterations, 0.0)]
        spans = [(after - since, count) for (since, count), (after, _) in pairwise(ends)]
        iterations = sum(span * self.iteration_s(network, processes, count) for span, count in spans)
        return iterations + self.reconstruction_s(network, processes)


def course_of(record: Record, samples: pd.DataFrame, name: str, element_s: float) -> Course | None:
    """Of a variant."""
    facts = record.ranks[0].facts if record.ranks else {}
    curve, iterations = facts.get("curves", {}).get(name), notes(record, samples, "iterations").get(name)
    if curve is None or iterations is None:
        return None
    active, back = (tuple((float(a), float(b)) for a, b in curve[key]) for key in ("active", "reconstructions"))
    return Course(iterations, active, back, int(facts["data"]["longest"]), element_s)


def element_s(record: Record, samples: pd.DataFrame) -> float | None:
    """What a kernel element takes on one rank, s: without shrinking, with all else of an iteration."""
    times, elements = seconds(record, samples), notes(record, samples, "elements")
    if record.case.ranks != 1 or ORIGINAL not in times or not elements.get(ORIGINAL):
        return None
    return times[ORIGINAL] / elements[ORIGINAL]


@dataclass(frozen=True, slots=True)
class Prediction:
    """Courses of a solution without shrinking and of one with it, for SCALED samples."""

    original: Course
    shrunk: Course

    def speedup(self) -> float:
        """Of MOST processes over one, with shrinking."""
        return self.shrunk.seconds(FDR, 1) / self.shrunk.seconds(FDR, MOST)

    def gain(self) -> float:
        """Of shrinking on MOST processes."""
        return self.original.seconds(FDR, MOST) / self.shrunk.seconds(FDR, MOST)

    def share(self) -> float:
        """Of reconstructions in the time of MOST processes."""
        return self.shrunk.reconstruction_s(FDR, MOST) / self.shrunk.seconds(FDR, MOST)


def prediction_of(record: Record, samples: pd.DataFrame) -> Prediction | None:
    """From a launch on one rank."""
    took = element_s(record, samples)
    if took is None:
        return None
    courses = [course_of(record, samples, name, took) for name in (ORIGINAL, JUDGED)]
    if courses[0] is None or courses[1] is None:
        return None
    factor = SCALED / courses[0].active[0][1]
    return Prediction(courses[0].scaled(factor), courses[1].scaled(factor))
