"""Compiled functions: cached machine code of an earlier version does no harm."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numba.core.caching import FunctionCache

from scaleproof.simulate.compiled import compiled


def doubled(values: np.ndarray) -> float:
    values[0] *= 2
    return float(values[0])


def test_machine_code_that_names_what_is_gone_is_made_anew(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))

    def gone(*_: object) -> None:
        raise AttributeError("Can't get attribute 'Tasks'")

    monkeypatch.setattr(FunctionCache, "load_overload", gone)
    assert compiled(doubled)(np.ones(1)) == 2
