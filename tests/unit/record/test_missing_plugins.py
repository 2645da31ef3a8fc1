"""A record of a plugin that is not installed here is read, listed, shown, collected and judged, with one warning."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from scaleproof.calibrate.attainable import NoBound, attainable
from scaleproof.claims.metrics import METRICS
from scaleproof.cli import main
from scaleproof.record.index import Index
from scaleproof.record.store import Store
from scaleproof.report.groups import network
from scaleproof.spec.case import parse_case
from tests.unit.records import commit, record

SUITE = """
suite: s
title: t
experiments:
  e:
    summary: two ranks
    base: {program: collective, ranks: 2, transport: shm, collective: ring, sizes: [8]}
    arms: {a: {}}
    sizes: {ci: {launches: 2, matrix: [{arms: [a]}]}}
"""
TRAINING = {
    "program": "train",
    "suite": "s",
    "experiment": "e",
    "arm": "b",
    "ranks": 2,
    "transport": "shm",
    "collective": "ring",
    "strategy": "sync",
    "workload": "cd_dnn",
    "minibatch": 4,
    "steps": 2,
}


def commit_foreign(results: Path, launch: str, **fields: Any) -> str:
    """A record whose case names plugins of somebody else's package; returns the id of its case."""
    trained = parse_case(TRAINING)
    folder = commit(results, record(launch, case=trained, case_id=trained.case_id))
    run = json.loads((folder / "run.json").read_text())
    run["case"] |= fields
    run["case_id"] = f"{launch}{trained.case_id[2:]}"
    (folder / "run.json").write_text(json.dumps(run))
    target = results / "runs" / run["case_id"] / launch
    target.parent.mkdir()
    folder.rename(target)
    folder.parent.rmdir()
    return str(run["case_id"])


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("strategy", "lazy_gossip"),
        ("strategy", {"name": "lazy_gossip", "peers": 3}),
        ("transport", "pigeons"),
        ("collective", "square"),
        ("workload", {"name": "poems", "width": 0.5}),
        ("framework", "flame"),
        ("launcher", "catapult"),
    ],
)
def test_a_record_of_a_missing_plugin_is_read_as_it_was_written(tmp_path: Path, kind: str, value: Any) -> None:
    case_id = commit_foreign(tmp_path, "bb", **{kind: value})
    name = value if isinstance(value, str) else value["name"]
    for store in (Store(tmp_path), Store(tmp_path, index=Index(tmp_path)), Store(tmp_path, index=Index(tmp_path))):
        [row] = store.rows(case_id)
        assert row["launch"] == "bb" and row["status"] == "ok"
        [record] = store.records(case_id)
        assert record.case.model_dump(mode="json")[kind] == value and len(store.samples(record)) == 6
        [line] = store.warnings
        assert line.startswith(f"plugin {name!r} ({kind}) is not installed here: ") and "\n" not in line


def test_a_record_of_missing_data_is_read_as_it_was_written(tmp_path: Path) -> None:
    workload = {"name": "cd_dnn", "data": "letters", "width": 0.5}
    case_id = commit_foreign(tmp_path, "bb", workload=workload)
    for store in (Store(tmp_path), Store(tmp_path, index=Index(tmp_path))):
        [record] = store.records(case_id)
        assert record.case.model_dump(mode="json")["workload"] == workload
        assert store.warnings[0].startswith("plugin 'letters' (dataset) is not installed here: ")
    assert Index(tmp_path).missing_plugins == [("dataset", "letters")]


@pytest.mark.parametrize(
    ("workload", "title"),
    [
        ({"name": "poems", "verses": 3}, "poems, minibatch 4"),
        ({"name": "poems", "width": 0.5}, "poems, width 0.5, minibatch 4"),
        ("cd_dnn", "CD-DNN, minibatch 4"),
    ],
)
def test_pages_name_its_network_as_far_as_it_is_known(tmp_path: Path, workload: Any, title: str) -> None:
    [record] = Store(tmp_path).records(commit_foreign(tmp_path, "bb", workload=workload))
    run: Any = SimpleNamespace(record=record)
    assert network(run) == title


@pytest.mark.parametrize(
    ("kind", "value"),
    [("strategy", "lazy_gossip"), ("transport", "pigeons"), ("workload", {"name": "poems", "verses": 3})],
)
def test_its_rate_has_no_bound(tmp_path: Path, kind: str, value: Any) -> None:
    [record] = Store(tmp_path).records(commit_foreign(tmp_path, "bb", **{kind: value}))
    attained = attainable(record, METRICS["throughput"], 80.0, None)
    assert isinstance(attained, NoBound) and attained.why.endswith(" not installed here")


def test_a_record_of_a_fabric_that_is_not_installed_says_so(tmp_path: Path) -> None:
    case_id = commit_foreign(tmp_path, "bb", fabric="web")
    store = Store(tmp_path)
    assert store.rows(case_id) == [] and "fabric 'web'" in store.warnings[0]


def test_commands_work_with_one_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results, suite = tmp_path / "results", tmp_path / "suites" / "s"
    suite.mkdir(parents=True)
    (suite / "suite.yaml").write_text(SUITE)
    (suite / "claims.yaml").write_text("[]\n")
    for number, launch in enumerate(("aa", "ac")):
        commit(results, record(launch, plan_index=number))
    commit_foreign(results, "bb", strategy={"name": "lazy_gossip", "peers": 3}, transport="pigeons")
    folder = ["--results", str(results)]
    planned = [str(suite), "--size", "ci", *folder]
    for command in (
        ["results", "list", *folder],
        ["results", "query", "SELECT count(*) FROM launches", *folder],
        ["show", "bb", *folder],
        ["collect", str(suite), "e", "--size", "ci", *folder],
        ["judge", *planned],
    ):
        assert main(command) == 0, command
        out, err = capsys.readouterr()
        if command[0] in ("results", "show"):
            assert err.count("'lazy_gossip' (strategy) is not installed here") == 1
            assert err.count("'pigeons' (transport) is not installed here") == 1
            assert "bb" in out or "3" in out
