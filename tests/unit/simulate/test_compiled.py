"""Compiled functions: cached machine code of an earlier version does no harm."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba.core.caching import FunctionCache

from scaleproof.core.machine_code import _say_what_takes_long
from scaleproof.simulate.compiled import compiled, typed


def doubled(values: np.ndarray) -> float:
    values[0] *= 2
    return float(values[0])


def test_machine_code_that_names_what_is_gone_is_made_anew(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))

    def gone(*_: object) -> None:
        raise AttributeError("Can't get attribute 'Tasks'")

    monkeypatch.setattr(FunctionCache, "_load_overload", gone)
    assert compiled(doubled)(np.ones(1)) == 2


def test_machine_code_is_made_anew_when_a_function_that_it_calls_has_changed(tmp_path: Path) -> None:
    head = "from scaleproof.simulate.compiled import compiled\n@compiled\n"
    (tmp_path / "caller.py").write_text(
        f"from callee import inner\n{head}def outer(x): return inner(x)\nprint(outer(2))"
    )

    def printed(body: str) -> str:
        (tmp_path / "callee.py").write_text(f"{head}def inner(x): return {body}")
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
        command = [sys.executable, str(tmp_path / "caller.py")]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()

    assert [printed("x + 1"), printed("x * 10")] == ["3", "20"]


def test_a_function_of_stated_types_takes_no_others() -> None:
    of_floats = typed("f8(f8[::1])")(doubled)
    assert of_floats(np.ones(1)) == 2
    with pytest.raises(TypeError, match="No matching definition"):
        of_floats(np.ones(1, np.float32))


def test_a_terminal_is_told_once_that_compiling_takes_long(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    _say_what_takes_long.cache_clear()
    compiled(doubled)(np.ones(1))
    compiled(doubled)(np.ones(1, np.float32))
    assert capsys.readouterr().err.count("compiling hot loops") == 1


@pytest.mark.parametrize(
    ("flags", "body"),
    [
        ("", "return len({'a' + str(each): each for each in range(int(x))})"),
        ("parallel=True", "return np.ones(x).sum()"),
    ],
)
def test_machine_code_that_hashes_texts_or_starts_threads_is_loaded_too(tmp_path: Path, flags: str, body: str) -> None:
    """A symbol that is missing would end the process, without an exception."""
    (tmp_path / "kernel.py").write_text(f"""
import sys
import numba
import numpy as np
from scaleproof.core.machine_code import Cache
def function(x):
    {body}
kernel = numba.njit({flags})(function)
kernel._cache = Cache(function)
print(int(kernel(3)), "numba.np.linalg" in sys.modules)
""")

    def printed() -> str:
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
        command = [sys.executable, str(tmp_path / "kernel.py")]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()

    assert [printed(), printed()] == ["3 True", "3 False"]
