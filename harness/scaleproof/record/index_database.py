"""The file of an index: one DuckDB database in results/index/. It is made again from the records if it is missing,
damaged, or was written by other code."""

from __future__ import annotations

import fcntl
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

FOLDER = "index"
"""In a results folder."""
LOCK_FILE = ".lock"
LOCK_WAIT_S, LOCK_POLL_S = 30.0, 0.02
"""How long a command waits while others read or write the database; afterwards it works without the database."""
Unusable = (OSError, duckdb.Error)
"""Errors of opening, reading or writing a file that cannot be used."""
MetricKey = tuple[str, str, str]
"""Case, launch and stamp of a record whose metrics were computed."""
_METRICS = pa.schema([(name, pa.string()) for name in ("case", "launch", "stamp", "suite", "version", "metric_values")])
_NUMBER = ("number", pa.int64())
"""Number of a launch, in `launches` and in `samples`; never used again in a file."""


class IndexDatabase:
    """Tables `launches`, `samples` and `metrics` of one results folder and one version of the code.

    Connections are short. Readers share a lock, a writer holds it alone, and the kernel frees the lock of a process
    that dies. If the folder cannot be written, the database is a temporary file, which costs only time."""

    def __init__(self, results: Path, version: str, launches: pa.Schema, samples: pa.Schema) -> None:
        self.path = results / FOLDER / f"{version}.duckdb"
        self._schemas = {
            "launches": pa.schema([_NUMBER, *launches]),
            "samples": pa.schema([_NUMBER, *samples]),
            "metrics": _METRICS,
        }
        self._temporary: tempfile.TemporaryDirectory[str] | None = None

    def table(self, sql: str, *parameters: object) -> pa.Table:
        """Result of a statement; Unusable if the database is missing or damaged."""
        with self._locked(fcntl.LOCK_SH), duckdb.connect(str(self.path), read_only=True) as connection:
            return connection.sql(sql, params=parameters).to_arrow_table()

    @contextmanager
    def attached(self, connection: duckdb.DuckDBPyConnection, name: str) -> Iterator[None]:
        """Attach the database to another one under this name, read-only, while the context lasts."""
        with self._locked(fcntl.LOCK_SH):
            quoted = str(self.path).replace("'", "''")
            connection.execute(f"ATTACH '{quoted}' AS {name} (READ_ONLY)")
            yield

    @contextmanager
    def writing(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """One transaction; Unusable if the database cannot be written, and then nothing has changed."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._locked(fcntl.LOCK_EX):
            is_new = not self.path.exists()
            with duckdb.connect(str(self.path)) as connection:
                connection.begin()
                if is_new:
                    self._create_tables(connection)
                yield connection
                connection.commit()
            if is_new:
                self._remove_other_versions()

    def stamps(self) -> dict[str, str]:
        """Stamp of every folder in the database. A damaged file is removed; OSError if others use it for too long."""
        if not self.path.exists():
            return {}
        try:
            rows = self.table("SELECT folder, stamp FROM launches").to_pylist()
        except duckdb.Error:
            self.remove()
            return {}
        return {row["folder"]: row["stamp"] for row in rows}

    def replace(self, folders: Sequence[str], launches: pa.Table, samples: pa.Table, counts: Sequence[int]) -> None:
        """Replace the rows of `folders` by these; `counts`: samples of each launch. Unusable if that fails, and then
        nothing has changed."""
        with self.writing() as connection:
            numbers_sql = "SELECT number FROM launches WHERE folder IN (SELECT unnest(?))"
            connection.execute(f"DELETE FROM samples WHERE number IN ({numbers_sql})", [list(folders)])
            connection.execute("DELETE FROM launches WHERE folder IN (SELECT unnest(?))", [list(folders)])
            sql = "SELECT nextval('numbers') AS number FROM range(?)"
            numbers = connection.execute(sql, [len(launches)]).fetchnumpy()["number"].astype(np.int64)
            connection.register("new_launches", launches.add_column(0, _NUMBER[0], pa.array(numbers)))
            connection.register("new_samples", samples.add_column(0, _NUMBER[0], pa.array(np.repeat(numbers, counts))))
            connection.execute("INSERT INTO launches SELECT * FROM new_launches")
            connection.execute("INSERT INTO samples SELECT * FROM new_samples")

    def metrics(self, suite: str, version: str) -> dict[MetricKey, str]:
        """Values of this version of a suite's metrics, as JSON."""
        try:
            table = self.table("SELECT * FROM metrics WHERE suite = ? AND version = ?", suite, version)
        except Unusable:
            return {}
        return {(row["case"], row["launch"], row["stamp"]): row["metric_values"] for row in table.to_pylist()}

    def add_metrics(self, suite: str, version: str, values: Mapping[MetricKey, str]) -> None:
        """Write these values; earlier ones of their launches, and of other versions of the metrics, are removed."""
        rows = [(*key, suite, version, content) for key, content in values.items()]
        columns = [pa.array(column, pa.string()) for column in zip(*rows, strict=True)]
        with suppress(*Unusable), self.writing() as connection:
            connection.register("new_metrics", pa.Table.from_arrays(columns, schema=_METRICS))
            connection.execute(
                "DELETE FROM metrics WHERE suite = ? AND (version <> ? OR launch IN (SELECT launch FROM new_metrics))",
                [suite, version],
            )
            connection.execute("INSERT INTO metrics SELECT * FROM new_metrics")

    def remove(self) -> None:
        """Delete the file and its write-ahead log."""
        with suppress(OSError), self._locked(fcntl.LOCK_EX):
            for path in (self.path, self.path.with_name(f"{self.path.name}.wal")):
                path.unlink(missing_ok=True)

    def use_temporary_file(self) -> None:
        """Go on with a temporary copy of the database, or an empty one if it cannot be read."""
        self._temporary = tempfile.TemporaryDirectory(prefix="scaleproof-index-")
        path = Path(self._temporary.name) / self.path.name
        with suppress(OSError), self._locked(fcntl.LOCK_SH):
            shutil.copyfile(self.path, path)
        self.path = path

    def _create_tables(self, connection: duckdb.DuckDBPyConnection) -> None:
        connection.execute("CREATE SEQUENCE numbers")
        for name, schema in self._schemas.items():
            connection.register("empty", pa.Table.from_batches([], schema))
            connection.execute(f"CREATE TABLE {name} AS SELECT * FROM empty")
            connection.unregister("empty")

    @contextmanager
    def _locked(self, kind: int) -> Iterator[None]:
        """Hold the lock; OSError if others hold it for too long. A folder that cannot be written is read without it."""
        try:
            lock = (self.path.parent / LOCK_FILE).open("a")
        except OSError:
            if kind == fcntl.LOCK_EX:
                raise
            yield
            return
        with lock:
            deadline = time.monotonic() + LOCK_WAIT_S
            while not _try_lock(lock.fileno(), kind):
                if time.monotonic() > deadline:
                    raise TimeoutError(f"{lock.name} is in use")
                time.sleep(LOCK_POLL_S)
            yield

    def _remove_other_versions(self) -> None:
        own = {LOCK_FILE, self.path.name, f"{self.path.name}.wal"}
        for other in self.path.parent.iterdir():
            if other.is_dir():
                shutil.rmtree(other, ignore_errors=True)
            elif other.name not in own:
                other.unlink(missing_ok=True)


def _try_lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
