"""Which files of the code a launch used, and when it has to run again."""

from __future__ import annotations

from pathlib import Path

import pytest

from scaleproof.core.record_schema import Code
from scaleproof.programs import own
from scaleproof.record import used_code
from scaleproof.record.used_code import agree, code_of, is_current, used_files
from scaleproof.spec.case import AnyCase
from tests.short_form import case_from

SUITE_CASE = {"suite": "s", "experiment": "e", "arm": "a"}
TRAINING = {
    **SUITE_CASE,
    "program": "train",
    "workload": "dnn_digits",
    "transport": "tcp",
    "collective": "ring",
    "minibatch": 8,
    "ranks": 2,
    "steps": 1,
}


def training(**fields: object) -> AnyCase:
    return case_from({**TRAINING, **fields})


def modules(case: AnyCase) -> set[str]:
    """Without the package's name."""
    return {name.removeprefix("scaleproof.") for name in used_files(case)}


def test_a_case_uses_its_plugins_what_they_import_and_no_other_plugin() -> None:
    ring = modules(training(strategy="sync_overlap"))
    assert ring >= {"rank.run_rank", "programs.train", "strategies.sync_overlap", "collectives.ring", "transports.tcp"}
    assert ring >= {"strategies.buckets", "workloads.dnn", "core.rendezvous"}
    assert not ring & {"strategies.parameter_server", "strategies.local_only", "collectives.tree", "transports.gloo"}
    assert not [name for name in ring if name.split(".")[0] in ("claims", "compare", "report", "commands", "simulate")]


def test_a_prediction_uses_the_simulator_and_no_rank() -> None:
    fabric = {"name": "simulated", "costs": "stated"}
    predicted = modules(training(strategy="sync", fabric=fabric, compute="none"))
    assert predicted >= {"simulate.predict", "simulate.step_engine", "strategies.sync", "collectives.ring"}
    assert "rank.run_rank" not in predicted and not [name for name in predicted if name.startswith("launch.start")]


def test_the_library_behind_a_plugin_is_used_and_imports_for_type_checkers_are_not(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(
        "import json\nfrom typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import never\n"
        "def late() -> None:\n    from scaleproof.core import board\n"
    )
    assert set(used_code._imports(module)) >= {"json", "scaleproof.core", "scaleproof.core.board"}
    assert "never" not in used_code._imports(module)
    assert "transports.ucx.ucp_library" in modules(training(strategy="sync", transport="ucx"))


def test_the_imports_of_a_suites_own_program_are_used(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import numpy\nfrom scaleproof.remote.tensor_channel import TensorChannel\n")
    own = case_from({"suite": "s", "experiment": "e", "arm": "a", "program": "own", "entry": "mine", "ranks": 2})
    used = used_files(own, str(tmp_path))
    assert "scaleproof.remote.tensor_channel" in used and {name.partition(".")[0] for name in used} == {"scaleproof"}
    assert "scaleproof.remote.tensor_channel" not in used_files(own)


def test_an_edit_to_a_used_file_ends_a_launchs_validity_and_another_edit_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    code = code_of(training(strategy="sync"))
    assert is_current(code, "host")
    today = used_code.content_hash

    def edited(name: str) -> None:
        monkeypatch.setattr(used_code, "content_hash", lambda module: "edited" if module == name else today(module))

    edited("scaleproof.strategies.parameter_server")
    assert is_current(code, "host")
    edited("scaleproof.strategies.sync")
    assert not is_current(code, "host")


def test_a_record_that_names_no_files_needs_the_whole_code_unchanged() -> None:
    code = code_of(training(strategy="sync")).model_copy(update={"files": {}})
    assert is_current(code, "host") and code.used == code.digest
    assert not is_current(code.model_copy(update={"digest": "other"}), "host")


def test_launches_of_the_same_files_have_one_digest_and_others_another() -> None:
    sync, local = (code_of(training(strategy=name)) for name in ("sync", "sync_overlap"))
    assert sync.used == code_of(training(strategy="sync", minibatch=16)).used != local.used
    assert sync.digest == local.digest


def test_files_agree_where_both_have_them() -> None:
    assert agree({"a": "1", "b": "1"}, {"b": "1", "c": "1"})
    assert not agree({"a": "1", "b": "1"}, {"b": "2"})
    assert not agree({}, {"b": "2"})


def test_code_without_files_is_read() -> None:
    assert Code.model_validate({"version": "0", "commit": None, "dirty": None, "digest": "d"}).files == {}


def test_a_suites_own_program_can_be_loaded_and_is_no_code_of_the_harness(tmp_path: Path) -> None:
    (tmp_path / "entry.py").write_text("from suite_programs import other\nimport scaleproof.core.board\n")
    (tmp_path / "other.py").touch()
    own.load_entry(tmp_path, "entry")
    case = case_from({**SUITE_CASE, "program": "own", "entry": "entry", "ranks": 1})
    files = used_files(case, str(tmp_path))
    assert "scaleproof.core.board" in files and not [name for name in files if name.startswith(own.PACKAGE)]
