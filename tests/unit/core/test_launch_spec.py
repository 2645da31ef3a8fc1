"""The specification of a launch, which other processes read while it is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from scaleproof.core.launch_spec import FILE, LaunchSpec, read_launch_spec

SPEC = LaunchSpec("a", {"ranks": 2}, "b", "ci", 0, 1, "token", "127.0.0.1", 60.0)


def test_it_reads_as_it_was_written(tmp_path: Path) -> None:
    SPEC.write(tmp_path)
    assert read_launch_spec(tmp_path) == SPEC


def test_nobody_sees_half_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(self: Path, target: Path) -> Path:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "rename", stopped)
    with pytest.raises(KeyboardInterrupt):
        SPEC.write(tmp_path)
    assert not (tmp_path / FILE).exists()
