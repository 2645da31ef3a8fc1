"""What numba compiles of a suite's program is kept on disk, and the next process has to find it there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from scaleproof.paths import PROJECT

PACK = """
import numpy as np
from pathlib import Path
from scaleproof.programs.own import load_entry

packing = load_entry(Path("suites/helios2021/programs"), "packing")
{meanwhile}
one = np.ones(2, np.int64)
print(packing.busy_times(np.array([0.0, 1.0]), np.array([2.0, 3.0]), one, one, np.zeros(2, np.int64), 8))
"""
OTHER = 'load_entry(Path("suites/saros2019/programs"), "ranking")'


@pytest.mark.parametrize("meanwhile", ["", OTHER])
def test_a_second_process_finds_what_the_first_one_compiled(tmp_path: Path, meanwhile: str) -> None:
    """Also where the first one has loaded another suite's programs in between, as tests do."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    printed = [
        subprocess.run(
            [sys.executable, "-c", PACK.format(meanwhile=each)],
            cwd=PROJECT,
            env=environment,
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for each in (meanwhile, "")
    ]
    assert list(tmp_path.rglob("*.nbc")) and printed[0] == printed[1]
