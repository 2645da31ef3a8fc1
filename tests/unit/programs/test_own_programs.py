"""A suite's own programs, loaded in the process that also looks at the code that they use; sleeping and spinning in
place of computing."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from scaleproof.paths import PROJECT
from scaleproof.programs import common
from scaleproof.programs.own import load_entry, preload_entry
from scaleproof.record import used_code
from scaleproof.spec.case import OwnCase
from scaleproof.spec.errors import SpecError
from scaleproof.spec.launch_kind import sleeps
from scaleproof.spec.suite import load_suite
from tests.short_form import case_from, train_case

SUITES = PROJECT / "suites"


def test_the_code_of_a_program_is_known_after_its_module_was_loaded() -> None:
    folder = PROJECT / "suites" / "crosscheck"
    case = next(case for case in load_suite(folder).experiments["tcp"].sizes["ci"].cases if case.arm == "iperf3")
    load_entry(folder / "programs", "iperf3")  # it imports its neighbour suite_programs.tools
    for cached in (used_code._hashes, used_code._source, used_code._folders):
        cached.cache_clear()
    assert "scaleproof.rank.process_lifetime" in used_code.used_files(case, str(folder / "programs"))


def test_what_is_imported_ahead_may_depend_on_the_case(tmp_path: Path) -> None:
    (tmp_path / "t.py").write_text("def preload(case):\n    return (case.options['wanted'],)\n")
    preload_entry(tmp_path, own_case(wanted="json"))
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        preload_entry(tmp_path, own_case(wanted="no_such_module"))


def test_machine_code_of_a_program_is_loaded_without_what_its_compiler_needs(tmp_path: Path) -> None:
    """numba's own cache imports SciPy's linear algebra and more first: 0.5 s of processor time for every rank."""
    (tmp_path / "kernels.py").write_text("import numba\n@numba.njit(cache=True)\ndef more(x): return x + 1\n")
    (tmp_path / "t.py").write_text("from suite_programs.kernels import more\ndef run(context): assert more(1) == 2\n")
    code = f"""
import sys
from pathlib import Path
from types import SimpleNamespace
from scaleproof.programs import own
from scaleproof.spec.case import OwnCase
case = OwnCase.model_validate({own_case().model_dump()!r})
own.run(SimpleNamespace(case=case, programs={str(tmp_path)!r}))
print("numba.np.linalg" in sys.modules)
"""

    def compiles() -> str:
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
        ran = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
        return ran.stdout.strip() or ran.stderr

    assert [compiles(), compiles()] == ["True", "False"]


def own_case(**options: int | str) -> OwnCase:
    fields = {"suite": "t", "experiment": "t", "arm": "t", "program": "own", "entry": "t", "ranks": 2}
    case = case_from({**fields, "options": options})
    assert isinstance(case, OwnCase)
    return case


def test_only_a_case_that_says_so_sleeps_in_place_of_computing(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(common, "time", SimpleNamespace(sleep=slept.append))
    for case in (own_case(), own_case(slept=0), train_case(workload="dnn_digits")):
        context: Any = SimpleNamespace(case=case)
        with pytest.raises(ValueError, match="slept"):
            common.sleep_for_compute(context, 1.0)
    context = SimpleNamespace(case=own_case(slept=1))
    common.sleep_for_compute(context, 1.0)
    assert slept == [1.0]


POLL_S = 0.01
"""Longest sleep of a poll: too short to stand for computing."""
WAITING = {"asyncio", "multiprocessing", "queue", "sched", "select", "selectors", "signal", "threading"}
"""Modules that can wait for a given time: a program needs none of them."""
HARMLESS = {("threading", "stack_size")}
"""Of these modules, what does not wait."""


def test_a_program_sleeps_only_in_polls_of_constant_length() -> None:
    """Every other sleep stands for work, and goes through `sleep_for_compute`."""
    programs = sorted(SUITES.glob("*/programs/*.py"))
    hidden = [
        f"{path.relative_to(PROJECT)}:{line}"
        for path in programs
        for line in hidden_sleeps(ast.parse(path.read_text()))
    ]
    assert len(programs) > 20 and hidden == []


@pytest.mark.parametrize(
    "code",
    [
        "import time\ntime.sleep(pause_s)",
        "import time\ntime.sleep(0.1)",
        "import time\nPAUSE_S = 0.1\ntime.sleep(PAUSE_S)",
        "import time\ntime.sleep(OF_ANOTHER_MODULE)",
        "import time as clock\nclock.sleep(pause_s)",
        "from time import sleep as rest\nrest(pause_s)",
        "from time import *\nsleep(pause_s)",
        "import time\nrest = time.sleep\nrest(pause_s)",
        "import threading\nthreading.Event().wait(pause_s)",
        "from threading import Event\nEvent().wait(pause_s)",
        "from threading import Event, stack_size\nstack_size(0)\nEvent().wait(pause_s)",
        "import select as polling\npolling.select([], [], [], pause_s)",
    ],
)
def test_a_sleep_is_found_however_it_is_written(code: str) -> None:
    assert hidden_sleeps(ast.parse(code))


def test_a_poll_may_sleep_for_a_short_constant_time() -> None:
    assert not hidden_sleeps(ast.parse("import time\nWAIT_S = 1e-4\ntime.sleep(WAIT_S)\ntime.sleep(0)"))
    assert not hidden_sleeps(ast.parse("from threading import stack_size\nstack_size(1 << 20)"))


def test_a_stated_cost_is_spent_only_where_the_case_says_that_it_is_emulated() -> None:
    for case in (own_case(), own_case(driver="cuda"), own_case(device="emulated")):
        with pytest.raises(SpecError, match="it needs the option `driver: emulated`"):
            common.stated_cost(case, "driver", 1e-3)
    spend, began = common.stated_cost(own_case(driver="emulated"), "driver", 1e-3), time.perf_counter()
    spend()
    assert time.perf_counter() - began >= 1e-3


def test_no_program_spins_for_a_time_by_itself() -> None:
    """A stated time passes by `stated_cost` or `sleep_for_compute` alone."""
    programs = sorted(SUITES.glob("*/programs/*.py"))
    hidden = [
        f"{path.relative_to(PROJECT)}:{line}" for path in programs for line in hidden_spins(ast.parse(path.read_text()))
    ]
    assert hidden == []


@pytest.mark.parametrize(
    ("code", "spins"),
    [
        ("while time.perf_counter_ns() < end:\n    pass", True),
        ("while now() < end:\n    x += 1", True),
        ("while (left := end - clock.thread_time()) > 0:\n    np.sqrt(values, out=values)", True),
        ("while pending() and time.monotonic() < end:\n    time.sleep(0.005)", False),
        ("while (left := end - now()) > 0:\n    sleep_for_compute(context, left)", False),
        ("while waiting:\n    waiting.pop()", False),
    ],
)
def test_a_spin_is_a_loop_that_only_a_clock_ends(code: str, spins: bool) -> None:
    assert bool(hidden_spins(ast.parse(code))) is spins


CLOCKS = re.compile(r"\b(now|(perf_counter|monotonic|thread_time|process_time|time)(_ns)?)\(\)")


def hidden_spins(tree: ast.Module) -> list[int]:
    """Lines of loops that end when a clock has come so far and for no other reason."""
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.While)
        and isinstance(node.test, ast.Compare)
        and CLOCKS.search(ast.unparse(node.test))
        and "sleep_for_compute(" not in ast.unparse(node)
    ]


def hidden_sleeps(tree: ast.Module) -> list[int]:
    """Lines that name `time.sleep`, by whatever name, other than for a poll, or import a module that can wait too."""
    origins, constants = _origins(tree), _constants(tree)
    polls = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call) and _is_poll(node, constants)}
    return [
        node.lineno
        for node in ast.walk(tree)
        if (isinstance(node, ast.Import | ast.ImportFrom) and _imports_waits(node))
        or (isinstance(node, ast.Name | ast.Attribute) and id(node) not in polls and _origin(node, origins) == SLEEP)
    ]


SLEEP = "time.sleep"


def _imports_waits(node: ast.Import | ast.ImportFrom) -> bool:
    if isinstance(node, ast.Import):
        return any(alias.name.partition(".")[0] in WAITING for alias in node.names)
    everything = node.module == "time" and any(alias.name == "*" for alias in node.names)
    wanted = {(node.module, alias.name) for alias in node.names} - HARMLESS
    return everything or (bool(wanted) and str(node.module).partition(".")[0] in WAITING)


def _origins(tree: ast.Module) -> dict[str, str]:
    """By the name that it has in the file, what was imported."""
    origins = dict[str, str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            origins |= {alias.asname: alias.name for alias in node.names if alias.asname}
        elif isinstance(node, ast.ImportFrom):
            origins |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return origins


def _origin(node: ast.expr, origins: dict[str, str]) -> str:
    first, dot, rest = ast.unparse(node).partition(".")
    return origins.get(first, first) + dot + rest


def _constants(tree: ast.Module) -> dict[str, Any]:
    """Values of the file's own constants."""
    return {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _is_poll(call: ast.Call, constants: dict[str, Any]) -> bool:
    if len(call.args) != 1:
        return False
    length = call.args[0]
    seconds = constants.get(length.id) if isinstance(length, ast.Name) else getattr(length, "value", None)
    return isinstance(seconds, int | float) and 0 <= seconds <= POLL_S


@pytest.mark.parametrize(("compute", "asleep"), [("real", False), ("none", False), ("replay", True)])
def test_replayed_compute_is_slept_and_real_compute_is_not(compute: str, asleep: bool) -> None:
    assert sleeps(train_case(workload="dnn_digits", compute=compute)) is asleep


def test_lemma_1_is_run_on_real_compute_too_and_the_models_traffic_never_is() -> None:
    arms = {
        (suite, experiment): {
            case.arm: sleeps(case)
            for size in load_suite(SUITES / suite).experiments[experiment].sizes.values()
            for case in size.cases
        }
        for suite, experiment in (("zou2017", "overhead"), ("xue2019", "traffic"), ("crosscheck", "arithmetic"))
    }
    overhead = arms.pop(("zou2017", "overhead"))
    assert not overhead.pop("multiplied") and all(overhead.values())
    assert all(asleep for of_experiment in arms.values() for asleep in of_experiment.values())
