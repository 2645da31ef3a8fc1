"""What keeps the start of a launch short: compiled modules are kept, and the parent of ranks imports no more than
ranks need."""

from __future__ import annotations

import importlib.metadata
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from scaleproof.core.launch_spec import LaunchSpec
from scaleproof.launch.launchers.launcher_contract import Launcher
from scaleproof.launch.launchers.local import Local
from scaleproof.launch.start.execute import execute, launch_environment, new_watch, prepare
from scaleproof.paths import IMPORT_ROOT
from tests.integration.launches import small_case

NOT_OF_RANKS = ("yaml", "logging", "concurrent.futures", "pyarrow", "scaleproof.simulate", "scaleproof.launch.start")
TRAINING = {
    "suite": "t",
    "experiment": "t",
    "arm": "t",
    "program": "train",
    "workload": {"name": "cd_dnn", "width": 0.125},
    "minibatch": 8,
    "steps": 1,
    "transport": "tcp",
    "collective": "ring",
    "strategy": "sync",
    "ranks": 2,
    "compute": "replay",
    "learning_rate": 0.1,
}

PRELOADED = """
import json, sys
from scaleproof.rank.parent import preload
from scaleproof.spec.case import parse_case
preload(parse_case(json.loads(sys.argv[1])));"""


def of_case(case: dict[str, Any]) -> LaunchSpec:
    return LaunchSpec("id", case, "c", "ci", 0, 7, "token", "127.0.0.1", 60.0)


def test_processes_of_a_launch_keep_compiled_modules_and_load_no_plugins_of_pydantic(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    variables = launch_environment(of_case({"threads_per_rank": 1}), Local(), tmp_path)
    assert "PYTHONDONTWRITEBYTECODE" not in variables and variables["PATH"] == os.environ["PATH"]
    assert variables["PYDANTIC_DISABLE_PLUGINS"] == "__all__"


@pytest.mark.parametrize("case", [small_case(transport="tcp").model_dump(mode="json"), TRAINING])
def test_the_parent_imports_only_what_ranks_need(case: dict[str, Any]) -> None:
    imported = printed(
        f"{PRELOADED} print(json.dumps(list(sys.modules)))",
        json.dumps(case),
    )
    assert not [name for name in json.loads(imported) if name.startswith(NOT_OF_RANKS)]


def test_the_parent_imports_what_stages_of_a_pipeline_need() -> None:
    pipeline = {"strategy": {"name": "pipeline", "stages": 2, "micro_batches": 2}, "collective": "native"}
    found = [
        printed(
            f"{PRELOADED} print('scaleproof.frameworks.torch.torch_stage' in sys.modules)",
            json.dumps({**TRAINING, **pipeline, "compute": compute}),
        )
        for compute in ("real", "replay")
    ]
    assert found == ["True", "False"]


def test_the_parent_imports_what_a_learned_predictor_needs() -> None:
    found = [
        printed(
            f"{PRELOADED} print('torch' in sys.modules, 'torch._dynamo' in sys.modules)",
            json.dumps(
                {
                    **TRAINING,
                    "strategy": {"name": "cut_off", "predictor": predictor},
                    "step_delay": "contention:0.02,2,0.02,0.1,4,1,0.9,0.1,0.08",
                    "warmup": 20,
                    "ranks": 3,
                }
            ),
        )
        for predictor in ("learned", "elfving")
    ]
    assert found == ["True False", "False False"]


def test_nothing_is_collected_while_the_parent_imports() -> None:
    program = """
import gc, sys
from contextlib import suppress
from scaleproof.rank import fork_ranks
collections = []
gc.callbacks.append(lambda phase, info: collections.append(phase))
with suppress(FileNotFoundError):  # the launch spec, which is read after all imports
    fork_ranks.main()
print(len(collections), "scaleproof.rank.run_rank" in sys.modules)
"""
    assert printed(program, "no folder") == "0 True"


def test_ranks_read_no_version_that_their_parent_has_read() -> None:
    program = """
import importlib.metadata, json, sys
from unittest.mock import patch
from scaleproof.core.launch_spec import LaunchSpec
from scaleproof.rank.parent import import_for
from scaleproof.rank.process_facts import rank_facts
import_for(LaunchSpec("id", json.loads(sys.argv[1]), "c", "ci", 0, 7, "token", "127.0.0.1", 60.0))
again = AssertionError("read again")
with patch("importlib.metadata.version", side_effect=again), patch("os.pread", side_effect=again):
    facts = rank_facts()
print(facts["packages"]["numpy"], json.dumps(facts["libraries"]))
"""
    version, _, libraries = printed(program, json.dumps(small_case().model_dump(mode="json"))).partition(" ")
    assert version == importlib.metadata.version("numpy")
    assert any("openblas" in name for name in json.loads(libraries)) and "not readable" not in libraries


def printed(program: str, argument: str) -> str:
    command = [sys.executable, "-c", program, argument]
    variables = {**os.environ, "PYTHONPATH": str(IMPORT_ROOT)}
    return subprocess.run(command, env=variables, capture_output=True, text=True, check=True, timeout=60).stdout.strip()


def test_a_launcher_that_ends_too_early_is_quoted(tmp_path: Path) -> None:
    class Broken(Launcher):
        def command(self, folder: Path, launch_spec: LaunchSpec) -> list[str]:
            return [sys.executable, "-c", "import sys; sys.exit('no module of that name\\n')"]

        def environment(self, folder: Path, launch_spec: LaunchSpec) -> dict[str, str]:
            return {}

    launch_spec = of_case(small_case(transport="tcp").model_dump(mode="json"))
    folder = tmp_path / launch_spec.launch
    prepare(folder, launch_spec)
    watch = new_watch(folder, launch_spec)
    ended = execute(folder, launch_spec, Broken(), dict(os.environ), watch)
    watch.board.close()
    assert ended.cause is not None and ended.cause.code == "start_failed"
    assert ended.cause.message.endswith("ended with code 1 before its ranks had ended: no module of that name")
