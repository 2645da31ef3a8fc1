"""The programs of sun2015 without Spark: the step, its engines, and what is said about a Spark that cannot start."""

from __future__ import annotations

import gzip
import importlib
import json
import os
import pickle
import re
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scaleproof.core.context import RankContext
from scaleproof.programs.own import load_entry
from scaleproof.rank.unsupervised_ranks import run_ranks
from tests.short_form import case_from

PROGRAMS = Path(__file__).resolve().parents[3] / "suites" / "sun2015" / "programs"
OPTIONS = {"layers": "64-100-30", "images": 12, "maps": 4, "reducers": 3, "decimals": 0, "workers": 0, "jobs": "naive"}


def module(name: str) -> Any:
    load_entry(PROGRAMS, "rbm")
    return importlib.import_module(f"suite_programs.{name}")


def case(**options: Any) -> Any:
    """A case of one rank on this machine."""
    return case_from(
        {
            "program": "own",
            "entry": "mapreduce",
            "suite": "sun2015",
            "experiment": "e",
            "arm": "a",
            "transport": "tcp",
            "collective": "ring",
            "ranks": options.pop("ranks", 1),
            "iterations": 1,
            "warmup": 0,
            "options": OPTIONS | options,
        }
    )


# --- the step ---


@given(st.integers(0, 9), st.lists(st.integers(1, 5), min_size=1, max_size=4))
@settings(max_examples=20, deadline=None)
def test_any_division_of_the_images_gives_the_serial_step(seed: int, parts: list[int]) -> None:
    rbm, inputs = module("rbm"), module("inputs")
    images, task = inputs.digits(sum(parts), seed), rbm.Task((64, 7, 3), 2, seed)
    bounds = np.cumsum([0, *parts])

    def total(_step: int, epoch: int, weights: Any) -> np.ndarray:
        return sum(
            rbm.gradient_of(task, images[low:high], range(low, high), weights, epoch)
            for low, high in zip(bounds, bounds[1:], strict=False)
        )

    divided = rbm.train(task, len(images), total)
    assert rbm.difference(divided, rbm.train_serially(task, images)) < 1e-10


def test_a_gradient_is_that_of_cd_1_written_out_for_one_image() -> None:
    rbm = module("rbm")
    generator = np.random.default_rng(3)
    visible, weights, draws = generator.random(5), generator.standard_normal((5, 4)), generator.random(4)
    hidden = 1 / (1 + np.exp(-visible @ weights))
    again = 1 / (1 + np.exp(-weights @ (draws < hidden)))
    last = 1 / (1 + np.exp(-again @ weights))
    wanted = 0.1 * (np.outer(visible, hidden) - np.outer(again, last))
    np.testing.assert_allclose(rbm.gradient(visible[None], weights, draws[None]), wanted, rtol=1e-12)


def test_weights_through_text_keep_three_decimals_and_others_all() -> None:
    rbm = module("rbm")
    images = module("inputs").digits(8, 1)
    cut = rbm.train_serially(rbm.Task((64, 6), 2, 1, decimals=3), images)[0]
    assert (np.abs(cut * 1000 - np.round(cut * 1000)) < 1e-9).all()
    exact = rbm.train_serially(rbm.Task((64, 6), 2, 1), images)[0]
    assert 1e-5 < np.abs(cut - exact).max() < 1e-2


def test_training_reconstructs_better_and_another_seed_is_another_training() -> None:
    rbm = module("rbm")
    images = module("inputs").digits(200, 1)
    task = rbm.Task((64, 20), 30, 1)
    trained = rbm.train_serially(task, images)
    assert rbm.reconstruction_error(images, trained) < rbm.reconstruction_error(images, [task.initial(0)])
    assert rbm.difference(trained, rbm.train_serially(rbm.Task((64, 20), 30, 2), images)) > 0.1


def test_mini_batches_take_fewer_passes_and_one_batch_takes_as_many() -> None:
    learning, rbm = module("learning"), module("rbm")
    images, task = module("inputs").digits(200, 1), rbm.Task((64, 20), 10, 1)
    error = rbm.reconstruction_error(images, rbm.train_serially(task, images))
    assert learning.passes_to(task, images, 10, error) < 5
    assert learning.passes_to(task, images, 200, error) == 10


# --- mappers and reducers, without Spark ---


@pytest.mark.parametrize(("form", "made"), [("pairs_of_images", 6 * 35), ("pairs_of_mapper", 35)])
def test_mappers_make_a_pair_per_weight_and_image_or_per_weight(form: str, made: int) -> None:
    jobs, rbm = module("map_reduce"), module("rbm")
    images, task = module("inputs").digits(6, 1)[:, :7], rbm.Task((7, 5), 1, 1)
    weights, counted = [task.initial(0)], list[int]()
    pairs = list(
        getattr(jobs, form)(
            enumerate(images), task, SimpleNamespace(value=weights), 0, SimpleNamespace(add=counted.append)
        )
    )
    assert len(pairs) == sum(counted) == made
    sums = dict(jobs.added_up(pairs))
    wanted = rbm.gradient_of(task, images, range(6), weights, 0).ravel()
    np.testing.assert_allclose([sums[key] for key in range(35)], wanted, rtol=1e-10, atol=1e-15)


def test_a_map_without_images_makes_no_pairs() -> None:
    jobs, rbm = module("map_reduce"), module("rbm")
    assert list(jobs.pairs_of_mapper([], rbm.Task((7, 5), 1, 1), None, 0, None)) == []


def test_only_the_first_reducer_of_the_victim_ends_its_worker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    jobs, killed = module("map_reduce"), list[int]()
    monkeypatch.setattr(os, "kill", lambda process, _: killed.append(process))
    marker = str(tmp_path / "killed")
    monkeypatch.setenv(jobs.PLACE, "0")
    assert list(jobs.added_up_or_killed([(1, 2.0), (1, 3.0)], "1", marker)) == [(1, 5.0)] and killed == []
    monkeypatch.setenv(jobs.PLACE, "1")
    assert list(jobs.added_up_or_killed([(1, 2.0)], "1", marker)) == [(1, 2.0)] and len(killed) == 2
    list(jobs.added_up_or_killed([(1, 2.0)], "1", marker))
    assert len(killed) == 2, "a job is run again after the loss, and must end"


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_an_all_reduce_gives_the_serial_step(ranks: int) -> None:
    from scaleproof.collectives.group import open_group

    reduce, rbm, inputs = module("all_reduce"), module("rbm"), module("inputs")

    def body(context: RankContext) -> None:
        images, task = inputs.digits(7, 2), rbm.Task((64, 9, 4), 2, 2)
        group = open_group(context)
        try:
            found = rbm.train(task, len(images), reduce.AllReduce(group, task, images).total)
            assert rbm.difference(found, rbm.train_serially(task, images)) < 1e-10
        finally:
            group.close()

    assert run_ranks(case(ranks=ranks), body) == [""] * ranks


# --- what Spark says ---


def task_end(stage: int, reason: str = "Success", written: int = 0, local: int = 0, remote: int = 0) -> dict[str, Any]:
    return {
        "Event": "SparkListenerTaskEnd",
        "Stage ID": stage,
        "Task End Reason": {"Reason": reason},
        "Task Metrics": {
            "Shuffle Write Metrics": {"Shuffle Bytes Written": written},
            "Shuffle Read Metrics": {"Local Bytes Read": local, "Remote Bytes Read": remote},
        },
    }


def job_start(job: str, stages: list[int]) -> dict[str, Any]:
    return {"Event": "SparkListenerJobStart", "Stage IDs": stages, "Properties": {"spark.jobGroup.id": job}}


def test_the_event_log_is_added_up_by_job(tmp_path: Path) -> None:
    log = tmp_path / "app-1"
    events = [
        {"Event": "SparkListenerLogStart"},
        job_start("naive", [0, 1]),
        task_end(0, written=100),
        task_end(0, "ExecutorLostFailure", written=7),
        task_end(1, local=30, remote=70),
        job_start("combiner", [2]),
        task_end(2, written=5),
        task_end(9, written=5),
    ]
    log.write_text("".join(json.dumps(event) + "\n" for event in events))
    found = module("event_log").shuffled(log)
    naive, combiner = found["naive"], found["combiner"]
    assert (naive.written, naive.local, naive.remote, naive.tasks, naive.lost) == (100, 30, 70, 3, 1)
    assert (combiner.written, combiner.lost) == (5, 0)


@pytest.mark.parametrize("line", ["{", "[]", '{"Event": "SparkListenerJobStart"}', '{"stage": 1}'])
def test_a_broken_event_log_is_named_with_its_line(tmp_path: Path, line: str) -> None:
    log = tmp_path / "app-1"
    log.write_text(json.dumps({"Event": "SparkListenerLogStart"}) + "\n" + line + "\n")
    with pytest.raises(ValueError, match=r"^app-1:2: no event of Spark \("):
        module("event_log").shuffled(log)


def test_a_log_is_kept_without_what_it_says_about_the_machine(tmp_path: Path) -> None:
    log, kept = tmp_path / "app-1", tmp_path / "kept.gz"
    log.write_text('{"Event":"SparkListenerEnvironmentUpdate","x":"/home"}\n{"Event":"SparkListenerJobEnd"}\n')
    module("event_log").keep(log, kept)
    assert gzip.decompress(kept.read_bytes()).decode() == '{"Event":"SparkListenerJobEnd"}\n'


# --- bad input ---


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"jobs": "naive combine"}, "options.jobs: unknown job 'combine'; did you mean 'combiner'?"),
        ({"jobs": "xyz"}, "options.jobs: unknown job 'xyz'; known: all_reduce, naive, combiner, in_mapper, killed"),
        ({"jobs": "killed"}, "options.jobs: 'killed' ends one of at least two workers, and is the last job"),
        ({"workers": 2}, "options.workers: 2 is not between 0 (none: Spark in one process) and 1 ranks"),
        ({"layers": "64"}, "options.layers: '64' is no list of layers; write the units of each, as 64-100-30"),
        ({"layers": "64-x"}, "options.layers: '64-x' is no list of layers"),
        ({"layers": "64-0-5"}, "options.layers: '64-0-5' is no list of layers"),
        ({"maps": 0}, "options.maps: 0 is no whole number from 1 on"),
        ({"reducers": 0}, "options.reducers: 0 is no whole number from 1 on"),
        ({"reducers": "two"}, "options.reducers: 'two' is no whole number from 1 on"),
        ({"decimals": -1}, "options.decimals: -1 is no whole number from 0 on"),
        ({"images": 10}, "options.images: 10 images do not divide into 4 maps of the same number"),
    ],
)
def test_wrong_options_are_an_obstacle_in_one_line(options: dict[str, Any], message: str) -> None:
    reason, advice = load_entry(PROGRAMS, "mapreduce").obstacle(case(**options))
    assert reason.startswith(message) and "\n" not in reason and advice == "correct it in suite.yaml"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"maps": 0}, "options.maps: 0 is no whole number from 1 on"),
        ({"images": 5000}, "options.images: 5000 is not between 1 and 1797, the images of scikit-learn"),
        ({"layers": "60-9"}, "options.layers: the first layer has 60 units, and an image 64 pixels"),
    ],
)
def test_wrong_options_are_said_in_one_line_before_anything_starts(options: dict[str, Any], message: str) -> None:
    program = load_entry(PROGRAMS, "mapreduce")

    def body(context: RankContext) -> None:
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            program.Launch(context)

    assert run_ranks(case(**options), body) == [""]


def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, home: str | None) -> str:
    jvm = module("jvm")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    if home is not None:
        monkeypatch.setenv("JAVA_HOME", home)
    with pytest.raises(jvm.SparkDidNotStart) as raised:
        jvm.java()
    return str(raised.value)


def test_a_missing_java_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert no_java(monkeypatch, tmp_path, None) == (
        "no Java: JAVA_HOME is not set, and no folder of PATH has a program 'java'"
    )
    assert no_java(monkeypatch, tmp_path, "/nowhere") == (
        "no Java: JAVA_HOME is /nowhere, and there is no /nowhere/bin/java"
    )


@pytest.mark.parametrize(("version", "number"), [("1.8.0_412", 8), ("11.0.2", 11)])
def test_an_old_java_is_said_with_both_versions(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str, number: int
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").touch()
    (tmp_path / "release").write_text(f'JAVA_VERSION="{version}"\n')
    message = no_java(monkeypatch, tmp_path, str(tmp_path))
    assert message == f"Java is too old: {tmp_path}/bin/java is version {number}, Spark needs 17"


def test_a_case_is_not_runnable_without_java_or_pyspark(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program, jvm = load_entry(PROGRAMS, "mapreduce"), module("jvm")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr(jvm.importlib.util, "find_spec", lambda name: SimpleNamespace(origin=f"/{name}/__init__.py"))
    reason, advice = program.obstacle(case())
    assert reason.startswith("no Java: JAVA_HOME is ") and "python3 -m tools.setup extras sun2015" in advice
    monkeypatch.setattr(jvm.importlib.util, "find_spec", lambda name: None)
    assert program.obstacle(case())[0] == "pyspark is not installed"


@pytest.mark.parametrize(
    ("log", "cause"),
    [
        (
            "26/11 INFO x\nException in main java.net.BindException: Address already in use: port 1\n\tat x\n",
            "java.net.BindException: Address already in use: port 1",
        ),
        ("26/11 WARN Utils: java.io.IOException: no matter\nlast words\n", "last words (exit code 3)"),
        ("Error: Could not find or load main class x\n", "Error: Could not find or load main class x"),
        ("", "it printed nothing (exit code 3)"),
    ],
)
def test_the_cause_of_a_failed_start_is_one_line_of_its_log(log: str, cause: str) -> None:
    assert module("jvm").cause_of(log, 3) == cause


# --- the encoding that the formulas of models/encoding.py describe ---


@pytest.mark.parametrize("size", [10, 300, 1000, 70_000])
def test_a_pickled_list_of_pairs_has_the_bytes_of_the_formula(size: int) -> None:
    from scaleproof.claims.suite_metrics import load_models

    encoding = load_models(PROGRAMS.parent / "models" / "__init__.py").encoding
    pairs = [(key, 0.1 * key) for key in range(size)]
    found = len(pickle.dumps(pairs, 5))
    assert found == pytest.approx(encoding.weights_bytes(size) + encoding.BATCH, rel=3e-3)


# --- the archive of classes ---


def test_an_archive_counts_once_its_process_has_ended_well(tmp_path: Path) -> None:
    archives = module("class_archive")
    new = archives.NewArchive(tmp_path / "cache" / "a.jsa")
    assert new.flag == f"-XX:ArchiveClassesAtExit={new.draft}" and new.draft.parent == new.archive.parent
    new.draft.write_text("half")
    new.settle(ended_well=False)
    assert not new.archive.exists() and not new.draft.exists()
    new.draft.write_text("whole")
    new.settle(ended_well=True)
    assert new.archive.read_text() == "whole" and not new.draft.exists()


def test_each_java_and_spark_has_an_archive_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    archives = module("class_archive")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for name in ("one", "two"):
        (tmp_path / name).touch()
    found = {
        archives.archive_of(tmp_path / java, Path(home), version, flags)
        for java, home, version, flags in (
            ("one", "h", "4.3.0", "f"),
            ("two", "h", "4.3.0", "f"),
            ("one", "i", "4.3.0", "f"),
            ("one", "h", "4.4.0", "f"),
            ("one", "h", "4.3.0", "g"),
        )
    }
    assert len(found) == 5 and {path.parent for path in found} == {tmp_path / "scaleproof" / "spark"}


def test_drafts_of_ended_processes_and_archives_that_nobody_uses_are_removed(tmp_path: Path) -> None:
    archives = module("class_archive")
    ours, others, unused = (tmp_path / f"{name}.jsa" for name in ("ours", "others", "unused"))
    living, dead = tmp_path / f"ours.jsa.{os.getpid()}", tmp_path / "ours.jsa.99999999"
    for path in (ours, others, unused, living, dead):
        path.touch()
    long_ago = time.time() - archives.KEPT_S - 60
    for path in (ours, unused):
        os.utime(path, (long_ago, long_ago))
    archives.tidy(ours)
    assert {path.name for path in tmp_path.iterdir()} == {ours.name, others.name, living.name}
    assert ours.stat().st_mtime > long_ago + archives.KEPT_S, "it is used"
    archives.tidy(tmp_path / "nowhere" / "a.jsa")


def test_the_archive_is_written_by_a_process_of_its_own_and_only_where_it_is_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A stand-in for the writer's program leaves a file in place of an archive."""
    writer, archive = module("archive_writer"), tmp_path / "a.jsa"
    monkeypatch.setattr(writer, "archive", lambda: archive)
    monkeypatch.setattr(writer, "_MAIN", "import sys; sys.exit('no Spark here')")
    assert not writer.ensure("127.0.0.1", tmp_path)
    assert "no Spark here" in (tmp_path / "archive-writer.log").read_text()
    main = f"import os, sys; assert sys.argv[2] == '127.0.0.1'; open({str(archive)!r}, 'w').write(str(os.getpid()))"
    monkeypatch.setattr(writer, "_MAIN", main)
    assert writer.ensure("127.0.0.1", tmp_path)
    first = archive.read_text()
    assert first != str(os.getpid()) and writer.ensure("127.0.0.1", tmp_path) and archive.read_text() == first


# --- processes of Spark ---


def test_a_process_has_no_settings_of_the_users_spark_or_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    jvm = module("jvm")
    theirs = ["SPARK_CONF_DIR", "PYSPARK_PYTHON", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS"]
    for name in [*theirs, "OF_THE_USER"]:
        monkeypatch.setenv(name, "theirs")
    printer = tmp_path / "java"
    printer.write_text(f"#!{sys.executable}\nimport os\nprint(sorted(os.environ))\n")
    printer.chmod(0o755)
    monkeypatch.setattr(jvm, "java", lambda: printer)
    monkeypatch.setattr(jvm, "spark_home", lambda: tmp_path)
    monkeypatch.setattr(jvm, "archive", lambda: tmp_path / "none.jsa")
    started = jvm.start("a printer", ["Main"], tmp_path, {"SPARK_LOCAL_IP": "ours"})
    assert started.process.wait(30) == 0
    found = set(json.loads(started.log.read_text().replace("'", '"')))
    assert not found & set(theirs) and {"OF_THE_USER", "SPARK_LOCAL_IP", "SPARK_HOME"} <= found


def test_executors_have_javas_own_compiler_and_collector(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    jvm, archive = module("jvm"), tmp_path / "a.jsa"
    monkeypatch.setattr(jvm, "archive", lambda: archive)
    options = "spark.executor.extraJavaOptions"
    assert module("cluster").settings("127.0.0.1", "t", tmp_path)[options] == jvm.QUIET
    archive.touch()
    told = module("cluster").settings("127.0.0.1", "t", tmp_path)[options]
    assert told.endswith(f"-XX:SharedArchiveFile={archive}")
    assert "Tiered" not in told and "GC" not in told


def test_a_driver_that_says_nothing_in_time_is_a_timeout(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    session, jvm = module("session"), module("jvm")
    (tmp_path / "log").touch()
    monkeypatch.setattr(session, "START_S", 0.05)
    alive = jvm.Jvm("Spark's driver", SimpleNamespace(poll=lambda: None, returncode=None), tmp_path / "log")
    with pytest.raises(jvm.SparkDidNotStart, match=r"^Spark's driver did not start within 0.05 s$"):
        session._told(alive, tmp_path / "told")
    ended = jvm.Jvm("Spark's driver", SimpleNamespace(poll=lambda: 3, returncode=3), tmp_path / "log")
    with pytest.raises(jvm.SparkDidNotStart, match=r"did not start: it printed nothing \(exit code 3\)$"):
        session._told(ended, tmp_path / "told")


def test_no_form_of_the_job_is_always_the_first_and_killed_is_the_last() -> None:
    order_of = load_entry(PROGRAMS, "mapreduce").order_of
    jobs = ["all_reduce", "naive", "combiner", "in_mapper", "killed"]
    orders = {tuple(order_of(jobs, seed)) for seed in range(60)}
    assert len(orders) == 6 and {order[-1] for order in orders} == {"killed"}
    assert order_of(jobs, 5) == order_of(jobs, 5) and order_of(["naive"], 1) == ["naive"]
