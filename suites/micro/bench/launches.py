"""A program of the suite over one transport as benchmarks: which cases these are, their launches, and what one message
or call took in each."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.replay import REPLAY
from scaleproof.claims.metrics import by_size
from scaleproof.claims.suite_metrics import suite_metrics
from scaleproof.core.record_schema import Record
from scaleproof.launch.supervisor import run_plan
from scaleproof.record.digest import code_digest, machine_id
from scaleproof.record.store import Store
from scaleproof.record.used_code import is_current
from scaleproof.spec.case import AnyCase, CollectiveCase, OwnCase, TransferCase
from scaleproof.spec.errors import SpecError
from scaleproof.spec.plan import PlannedLaunch, plan
from scaleproof.spec.suite import Suite, load_suite

FOLDER = Path(__file__).parents[1]
PROGRAMS: dict[str, tuple[str, ...]] = {
    "latency": ("costs",),
    "collectives": ("costs", "collectives"),
    "bandwidth": ("bandwidth",),
    "message_rate": ("message_rate",),
    "bidirectional": ("bidirectional",),
    "incast": ("incast",),
}
"""What a file of this folder may be about, and the experiments that its cases are in."""


@dataclass(frozen=True, slots=True)
class Point:
    """One benchmark: a case at one message size."""

    experiment: str
    case: AnyCase
    nbytes: int

    def __str__(self) -> str:
        operation = getattr(self.case, "operation", None)
        return "-".join(
            [
                *([operation] if operation else []),
                *([f"{self.case.ranks}ranks"] if self.case.ranks != 2 else []),
                f"{self.nbytes}B",
            ]
        )


def _is_current(record: Record) -> bool:
    return is_current(record.code, record.case.fabric)


def benchmark_of(program: str, transport: str) -> Callable[..., None]:
    """The test of a file: one benchmark for each message size that the size of the suite has."""
    if program not in PROGRAMS:
        raise SpecError(f"no program {program!r}; known: {', '.join(PROGRAMS)}")

    @pytest.mark.timeout(1800)
    @pytest.mark.benchmark(timer=REPLAY.time)
    def test(point: Point, launches: Launches, benchmark: BenchmarkFixture) -> None:
        if not benchmark.enabled:
            pytest.skip("it runs launches: ask for it with --benchmark-enable")
        result = launches.of(point)
        seconds = [took for record in result if (took := launches.seconds(record, point.nbytes)) is not None]
        if not seconds:
            pytest.skip(launches.why_none(point))
        benchmark.group = f"{program} {point}"
        benchmark.extra_info.update(
            suite="micro",
            experiment=point.experiment,
            program=program,
            transport=transport,
            nbytes=point.nbytes,
            case=point.case.case_id,
            launches=[record.launch for record in result],
            evidence=sorted({record.evidence for record in result}),
            code=code_digest(),
            machine=machine_id(),
        )
        REPLAY.run(benchmark, seconds)

    test.program, test.transport = program, transport  # type: ignore[attr-defined]
    return test


def points(suite: Suite, size: str, program: str, transport: str) -> list[Point]:
    """Every benchmark of a file; none where the size leaves the transport out."""
    selected = []
    for experiment in PROGRAMS[program]:
        if size in suite.experiment(experiment).sizes:
            cases = [
                case
                for case in suite.experiment(experiment).size(size).cases
                if case.arm == transport and _is_about(case, program)
            ]
            selected += [Point(experiment, case, nbytes) for case in cases for nbytes in getattr(case, "sizes", ())]
    return selected


def _is_about(case: AnyCase, program: str) -> bool:
    if program == "latency":
        return isinstance(case, TransferCase)
    return isinstance(case, CollectiveCase if program == "collectives" else OwnCase)


class Launches:
    """The launches of all chosen benchmarks, run once, interleaved by experiment; what is finished already is taken as
    it is."""

    def __init__(self, results: Path, size: str, chosen: Iterable[Point]) -> None:
        self.suite, self.size, self.results = load_suite(FOLDER), size, results
        self._wanted: dict[str, set[str]] = {}
        for point in chosen:
            self._wanted.setdefault(point.experiment, set()).add(point.case.case_id)
        self._plans: dict[str, list[PlannedLaunch]] = {}
        self._store: Store | None = None
        self._samples: dict[str, Any] = {}

    def of(self, point: Point) -> list[Record]:
        """The finished launches of a benchmark's case, by repetition."""
        store, case_id = self._run(), point.case.case_id
        indices = [launch.plan_index for launch in self._plans[point.experiment] if launch.case.case_id == case_id]
        records = [store.find(case_id, index, machine_id(), _is_current) for index in indices]
        return [record for record in records if record is not None]

    def why_none(self, point: Point) -> str:
        """What the records of a case say that gave this size no value."""
        if self.of(point):
            return f"{point.nbytes} B are no element for each of {point.case.ranks} ranks: nothing is moved"
        failures = [record.failure for record in self._run().records(point.case.case_id) if record.failure]
        return f"{failures[-1].message}; {failures[-1].advice}" if failures else "no launch finished"

    def seconds(self, record: Record, nbytes: int) -> float | None:
        """s of one message or call: median over a launch's samples; of windows, the time in which all flows were under
        way over their messages."""
        samples = self._read(record)
        if isinstance(record.case, OwnCase):
            rate = suite_metrics(self.suite.folder)["message_rate"].size
            assert rate is not None
            measured = rate(record, samples, nbytes)
            return 1 / measured if measured else None
        rows = by_size(record, samples)
        rows = rows[rows["nbytes"] == nbytes]
        return float(rows["time_s"].iloc[0]) if len(rows) else None

    def _read(self, record: Record) -> Any:
        if record.launch not in self._samples:
            self._samples[record.launch] = self._run().samples(record).to_pandas()
        return self._samples[record.launch]

    def _run(self) -> Store:
        if self._store is None:
            for experiment, cases in self._wanted.items():
                chosen = [launch for launch in plan(self.suite, experiment, self.size) if launch.case.case_id in cases]
                self._plans[experiment] = chosen
                run_plan(
                    chosen,
                    self.results,
                    size=self.size,
                    deadline_s=self.suite.experiment(experiment).size(self.size).deadline_s,
                )
            self._store = Store(self.results)
        return self._store
