"""Where a rank runs: the ids that the supervisor knows its threads by."""

from __future__ import annotations

from pathlib import Path

import pytest

from scaleproof.core import location


def test_a_thread_that_ends_while_threads_are_listed_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(location.PROC, str(tmp_path))
    (tmp_path / "self").symlink_to("700")
    for outer, inner in ((700, 1), (702, 3)):
        (tmp_path / "700/task" / str(outer)).mkdir(parents=True)
        (tmp_path / f"700/task/{outer}/status").write_text(f"Name:\tpython\nNSpid:\t{outer}\t{inner}\nThreads:\t3\n")
    (tmp_path / "700/task/701").mkdir()  # its files went when it ended
    assert sorted(location.threads([1, 2, 3])) == [700, 702]
