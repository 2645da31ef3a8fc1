"""How many tensors Horovod reduced and fused, from a timeline that its thread may still write."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from scaleproof.transports.horovod import horovod_transport
from scaleproof.transports.horovod.horovod_transport import TIMELINE_EVENT, fused_tensors

REDUCED, FUSED = (TIMELINE_EVENT.format(event) + "\n" for event in ("ALLREDUCE", "MEMCPY_IN_FUSION_BUFFER"))


def test_tensors_are_counted_that_are_written_a_moment_later(tmp_path: Path) -> None:
    timeline = tmp_path / "timeline.json"
    timeline.write_text(REDUCED)

    def write_on() -> None:
        with timeline.open("a") as file:
            file.write(REDUCED + FUSED)

    later = threading.Timer(0.1, write_on)
    later.start()
    assert fused_tensors(timeline, 2) == {"tensors": 2, "fused": 1}
    later.join()


def test_what_does_not_come_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(horovod_transport, "WRITTEN_S", 0.05)
    timeline = tmp_path / "timeline.json"
    timeline.write_text(REDUCED + FUSED)
    assert fused_tensors(timeline, 3) == {"tensors": 1, "fused": 1, "missing": 2}
