"""The append-only store of launches: results/runs/<case>/<launch>/."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError

from harness.record.schema import SAMPLES, Record
from harness.record.write import RUN, SAMPLES_FILE, write_record
from harness.spec.case import AnyCase
from harness.spec.emulated import emulated, true_bytes, true_times
from harness.spec.errors import SpecError


class Store:
    """Records of one results folder. What cannot be read as a whole record is never a result: it is told to `warn` and left in place."""

    def __init__(self, results: Path, warn: Callable[[str], None] | None = None) -> None:
        self.results = results
        self.runs = results / "runs"
        self.staging = results / "staging"
        self.warnings: list[str] = []
        self._tell = warn
        self._known: dict[Path, Record | None] = {}

    def find(self, case_id: str, plan_index: int, digest: str, machine: str, counts: Callable[[Record], bool] = bool) -> Record | None:
        """The finished record (status ok) of this launch of a plan that `counts`, None when there is none."""
        for record in self.records(case_id):
            same = record.plan_index == plan_index and record.code.digest == digest and record.machine == machine
            if record.status == "ok" and same and counts(record):
                return record
        return None

    def records(self, case_id: str | None = None) -> Iterator[Record]:
        """Every readable record, of one case or of all, oldest first within a case."""
        cases = [self.runs / case_id] if case_id is not None else sorted(self.runs.iterdir()) if self.runs.exists() else []
        for folder in cases:
            found = [self._read(path) for path in (sorted(folder.iterdir()) if folder.is_dir() else [])]
            yield from sorted((record for record in found if record is not None), key=lambda record: record.started_at)

    def load(self, launch: str) -> tuple[Record, Path]:
        """The record and folder of a launch id or of an unambiguous beginning of one; SpecError otherwise."""
        found = sorted(self.runs.glob(f"*/{launch}*")) if launch.isalnum() else []
        if len(found) != 1:
            raise SpecError(f"no launch {launch!r} in {self.runs}" if not found else f"{launch!r} is the beginning of {len(found)} launches")
        record = self._read(found[0])
        if record is None:
            raise SpecError(self.warnings[-1])
        return record, found[0]

    def folder(self, record: Record) -> Path:
        """Where a record lies."""
        return self.runs / record.case_id / record.launch

    def samples(self, record: Record) -> pa.Table:
        """All samples of a record, in the schema's form, in the time and the bytes that it emulates: here, and nowhere else, what dilation and shrink of its
        case did is taken back. The file keeps what the launch's own clock said."""
        table = pq.read_table(self.folder(record) / SAMPLES_FILE, schema=SAMPLES)
        return as_emulated(record.case, table) if emulated(record.case) else table

    def commit(self, staging_folder: Path, record: Record, samples: pa.Table) -> Path:
        """Make a launch's record from its staging folder, by one rename, and remove that folder. Raises OSError when the disk is full: then nothing is left."""
        logs = sorted(staging_folder.glob("*.log"))
        kept = [staging_folder / name for name in record.artifacts]
        target = self.runs / record.case_id / record.launch
        try:
            write_record(staging_folder / "record", target, record, samples, [*logs, *kept])
            return target
        finally:
            shutil.rmtree(staging_folder, ignore_errors=True)

    def _read(self, folder: Path) -> Record | None:
        if folder not in self._known:
            self._known[folder] = self._parse(folder)
        return self._known[folder]

    def _parse(self, folder: Path) -> Record | None:
        try:
            record = Record.model_validate_json((folder / RUN).read_bytes())
            if (record.case_id, record.launch) != (folder.parent.name, folder.name):
                raise ValueError("it says another case or launch than its folder")
            pq.read_metadata(folder / SAMPLES_FILE)
        except (OSError, ValueError, pa.ArrowInvalid) as error:
            self.warnings.append(f"{folder} is not a record of this version and is ignored: {_reason(error)}")
            if self._tell is not None:
                self._tell(self.warnings[-1])
            return None
        return record


def as_emulated(case: AnyCase, table: pa.Table) -> pa.Table:
    """Samples in emulated time: moments over the dilation, bytes times the shrink."""
    for columns, taken_back in ((("start_ns", "end_ns"), true_times), (("nbytes",), true_bytes)):
        for name in columns:
            place = table.schema.get_field_index(name)
            table = table.set_column(place, table.schema.field(place), pa.array(taken_back(case, table.column(name).to_numpy())))
    return table


def _reason(error: Exception) -> str:
    """One line."""
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False)[0]
        return f"{RUN}: {'.'.join(str(part) for part in first['loc'])}: {first['msg']}".replace(": :", ":")
    if isinstance(error, OSError) and error.filename:
        return f"{Path(error.filename).name}: {error.strerror}"
    return str(error).splitlines()[0]
