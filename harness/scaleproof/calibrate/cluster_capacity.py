"""The capacity of this machine: bytes and messages per second that all nodes of an emulated cluster together move when
the cores do nothing else."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, PositiveInt

from scaleproof.calibrate.measured_profiles import spread
from scaleproof.claims.metrics_sizes import by_size
from scaleproof.core.atomic_write import read_form, write_form
from scaleproof.core.record_schema import Record
from scaleproof.launch.progress import Progress
from scaleproof.launch.supervisor import run_plan
from scaleproof.record.digest import code_digest, machine_id
from scaleproof.record.machine_load import HZ
from scaleproof.record.store import Store
from scaleproof.simulate.collective_schedules import Pattern, pattern_of
from scaleproof.spec.case import CollectiveCase
from scaleproof.spec.errors import SpecError
from scaleproof.spec.plan import plan
from scaleproof.spec.suite import load_suite
from scaleproof.workloads.profile import Spread

SUITE = Path(__file__).with_name("carrying")
EXPERIMENT, SIZE = "traffic", "full"
FILE = "capacity.json"
"""Name of the file in results/machines/<id>/."""


class Capacity(BaseModel):
    """Rates of all nodes together, per s, each the median over launches with its interval."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    schema_version: Literal[1] = 1
    machine: str
    code: str
    measured_at: str
    bulk: Spread
    """Bytes per second in large messages at full speed: the machine cannot move more."""
    paced: Spread
    """Bytes per second over slow links: those moved per second of processor time, times the cores. Up to this rate the
    cores have idle time; above it bytes wait for a core, and are read in larger pieces, which cost less."""
    messages: Spread
    """Small messages per second at full speed."""
    ranks: PositiveInt
    taken: str


def messages_in(pattern: Pattern) -> int:
    """Messages that all ranks together send in one call."""
    return sum(len(transfers.source) * times for transfers, times in pattern.rounds)


def read_capacity(results: Path) -> Capacity | None:
    """The capacity of this machine; None when it was never measured. SpecError for a file in the form of another
    version."""
    remedy = "no capacity of this version; `scaleproof dilate --measure` makes a new one"
    return read_form(results / "machines" / machine_id() / FILE, Capacity, remedy)


def measure_capacity(results: Path, progress: Progress) -> Capacity:
    """Run the launches again and store the capacity. SpecError when no launch of an arm ended well."""
    launches = plan(load_suite(SUITE), EXPERIMENT, SIZE)
    outcome = run_plan(launches, results, size=SIZE, deadline_s=90.0, progress=progress, again=True)
    store = Store(results)
    records = [store.load(launch)[0] for launch in outcome.launches]
    capacity = _capacity([record for record in records if record.status == "ok"], store)
    write_form(results / "machines" / capacity.machine / FILE, capacity)
    return capacity


def _capacity(records: list[Record], store: Store) -> Capacity:
    of = {arm: [record for record in records if record.case.arm == arm] for arm in ("messages", "bulk", "paced")}
    messages = [messages_in(_pattern(record)) / call_s(record, store) for record in of["messages"]]
    bulk = [_bytes_sent(record) / call_s(record, store) for record in of["bulk"]]
    paced = [rate for record in of["paced"] if (rate := paced_rate(record)) is not None]
    if not messages or not bulk or not paced:
        raise SpecError(
            "no launch that measures the machine's capacity ended well; `scaleproof doctor` says whether fabric netns "
            "works here"
        )
    taken = (
        f"all-reduces (ring, tcp) among {records[0].case.ranks} nodes of namespaces: small and large ones as fast as "
        "they go; large ones over slow links "
        "(paced), bytes per second of processor time times the cores; medians over launches"
    )
    return Capacity(
        machine=machine_id(),
        code=code_digest(),
        measured_at=datetime.now(UTC).isoformat(timespec="seconds"),
        ranks=records[0].case.ranks,
        bulk=spread(bulk),
        paced=spread(paced),
        messages=spread(messages),
        taken=taken,
    )


def _pattern(record: Record) -> Pattern:
    return pattern_of(record.case.collective, "all_reduce", record.case.ranks)


def _bytes_sent(record: Record) -> float:
    """Bytes that all ranks send in a call of the launch's first size."""
    assert isinstance(record.case, CollectiveCase)
    return _pattern(record).sent * record.case.sizes[0]


def call_s(record: Record, store: Store) -> float:
    """The median time of a call of the launch, in s."""
    return float(by_size(record, store.samples(record).to_pandas())["time_s"].iloc[0])


def paced_rate(record: Record) -> float | None:
    """Bytes that all ranks moved in the timed region per second of processor time, times the cores; None without
    processor time."""
    first, last = (record.ranks[0].facts["pace"][moment] for moment in ("start", "end"))
    busy_s = ((last["ticks"] - first["ticks"]) - (last["idle_ticks"] - first["idle_ticks"])) / HZ
    cores = (last["ticks"] - first["ticks"]) / HZ / ((last["at_ns"] - first["at_ns"]) / 1e9)
    return sum(part.asked_bytes for part in record.network) / busy_s * cores if busy_s > 0 else None
