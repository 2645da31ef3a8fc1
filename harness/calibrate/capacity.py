"""What this machine carries: bytes and messages a second that all nodes of an emulated cluster together move when the cores are the only limit."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, PositiveFloat, PositiveInt, ValidationError

from harness.calibrate.profiles import spread
from harness.claims.metrics_sizes import by_size
from harness.launch.progress import Progress
from harness.launch.supervisor import run_plan
from harness.record.digest import code_digest, machine_id
from harness.record.schema import Record
from harness.record.store import Store
from harness.simulate.schedules import Pattern, pattern_of
from harness.spec.errors import SpecError
from harness.spec.locate import shown
from harness.spec.plan import plan
from harness.spec.suite import load_suite
from harness.workloads.profile import Spread

SUITE = Path(__file__).with_name("carrying")
EXPERIMENT, SIZE = "traffic", "full"
FILE = "capacity.json"
"""In a machine's folder results/machines/<id>/."""


class Capacity(BaseModel):
    """Rates of all nodes together, per s, each the median over launches with its interval."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    schema_version: Literal[1] = 1
    machine: str
    code: str
    measured_at: str
    nbytes: Spread
    """Bytes a second, in large messages."""
    messages: Spread
    """Messages a second, small ones."""
    ranks: PositiveInt
    large: PositiveFloat
    """Bytes of a large message."""
    taken: str


def messages_in(pattern: Pattern) -> int:
    """Messages that all ranks together send in one call."""
    return sum(len(one.source) * times for one, times in pattern.rounds)


def read_capacity(results: Path) -> Capacity | None:
    """This machine's; None when it was never measured. SpecError for a file of another form."""
    path = results / "machines" / machine_id() / FILE
    try:
        return Capacity.model_validate_json(path.read_bytes()) if path.exists() else None
    except ValidationError:
        raise SpecError(f"{shown(path)}: no capacity of this version; `scaleproof dilate --measure` makes a new one") from None


def measure_capacity(results: Path, progress: Progress) -> Capacity:
    """Run the launches anew and store what they moved. SpecError when none ended well."""
    suite = load_suite(SUITE)
    launches = plan(suite, EXPERIMENT, SIZE)
    outcome = run_plan(launches, results, size=SIZE, deadline_s=90.0, progress=progress, again=True)
    store = Store(results)
    records = [record for record in store.records(launches[0].case.case_id) if record.launch in outcome.launches and record.status == "ok"]
    if not records:
        raise SpecError(f"none of {outcome.planned} launches that measure what this machine carries ended well; `scaleproof doctor` tells about fabric netns")
    found = _capacity(records, store)
    path = results / "machines" / found.machine / FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{FILE}.{os.getpid()}")
    draft.write_text(json.dumps(found.model_dump(mode="json"), indent=1) + "\n")
    draft.rename(path)
    return found


def _capacity(records: list[Record], store: Store) -> Capacity:
    case = records[0].case
    pattern = pattern_of(case.collective, "all_reduce", case.ranks)
    small, large = min(case.sizes), max(case.sizes)  # type: ignore[union-attr]
    rates: dict[int, list[float]] = {small: [], large: []}
    for record in records:
        times = by_size(record, store.samples(record).to_pandas()).set_index("nbytes")["time_s"]
        for nbytes, found in rates.items():
            found.append(1 / float(times[nbytes]))
    bulk, count = pattern.sent * large, messages_in(pattern)
    taken = (
        f"all-reduces (ring, tcp) of {small} and {large} bytes among {case.ranks} nodes of namespaces with links as fast as they go; "
        f"median over {len(records)} launches of each one's median call"
    )
    return Capacity(
        machine=machine_id(), code=code_digest(), measured_at=datetime.now(UTC).isoformat(timespec="seconds"), ranks=case.ranks, large=bulk / count,
        nbytes=spread([rate * bulk for rate in rates[large]]), messages=spread([rate * count for rate in rates[small]]), taken=taken,
    )  # fmt: skip
