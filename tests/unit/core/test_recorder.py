"""Events are read back as they were written, whatever was left empty behind them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from scaleproof.core.recorder import EVENT_DTYPE, PART, Recorder, read_events


@pytest.mark.parametrize("count", [0, 1, PART, PART + 1, 3 * PART + 5])
def test_all_events_of_a_mostly_empty_file_are_read(tmp_path: Path, count: int) -> None:
    recorder = Recorder(tmp_path / "rank-0.events", 4 * PART)
    for step in range(count):
        recorder.add("step", step, 1, 2)
    assert np.array_equal(read_events(recorder.path)["step"], np.arange(count))


def test_a_row_that_was_not_finished_does_not_count(tmp_path: Path) -> None:
    path = tmp_path / "rank-0.events"
    rows = np.zeros(3, EVENT_DTYPE)
    rows["end_ns"][:2] = 7
    path.write_bytes(rows.tobytes() + b"half")
    assert len(read_events(path)) == 2
    assert len(read_events(tmp_path / "none")) == 0
