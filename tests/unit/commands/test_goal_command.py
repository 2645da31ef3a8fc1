"""`scaleproof goal`: a collective is written as a graph, and the graph takes as long as the collective must."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from scaleproof.cli import main
from scaleproof.rank_programs.graph.rank_graph import Kind
from scaleproof.simulate.collective_schedules import pattern_of
from scaleproof.simulate.rank_graph.collective_graph import collective_graph

MIB = 1 << 20


def replayed(path: Path, capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, Any]:
    capsys.readouterr()
    assert main(["goal", "replay", str(path), *options, "--json", "--results", str(path.parent)]) == 0
    values: dict[str, Any] = json.loads(capsys.readouterr().out)
    return values


def exported(folder: Path, ranks: int, *options: str) -> Path:
    path = folder / "a.goal"
    assert main(["goal", "export", "--ranks", str(ranks), "--nbytes", "64 MiB", "--out", str(path), *options]) == 0
    return path


def test_a_ring_takes_what_its_links_and_costs_make_it_take(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = replayed(exported(tmp_path, 4), capsys, "--fabric", "1g")
    bytes_moved = 6 * 16 * MIB
    assert values["messages"] == 24 and values["ranks"] == 4 and values["evidence"] == "simulated"
    assert bytes_moved / 1.25e8 < values["seconds"] < 1.2 * bytes_moved / 1.25e8


def test_a_faster_network_takes_less(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = exported(tmp_path, 8, "--collective", "halving_doubling")
    slow, fast = (replayed(path, capsys, "--fabric", rate)["seconds"] for rate in ("1g", "10g"))
    assert 5 < slow / fast < 11


def test_what_is_printed_says_that_it_is_simulated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = exported(tmp_path, 2)
    assert main(["goal", "replay", str(path), "--fabric", "10g", "--results", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert (
        "all done after " in printed and "2 ranks, 8 nodes, 4 messages" in printed and "evidence: simulated" in printed
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["export", "--ranks", "1", "--nbytes", "8"], "--ranks 1: give 2 to"),
        (["export", "--ranks", "2", "--nbytes", "many"], "--nbytes: 'many' is no size in bytes"),
        (["export", "--ranks", "2", "--nbytes", "8", "--collective", "rong"], "did you mean 'ring'"),
    ],
)
def test_a_wrong_option_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert main(["goal", *arguments, "--out", str(tmp_path / "a.goal")]) == 2
    error = capsys.readouterr().err
    assert message in error and len(error.strip().splitlines()) == 1 and not (tmp_path / "a.goal").exists()


def test_ranks_that_wait_for_ever_are_one_line_with_the_circle(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "num_ranks 2\n"
    for rank in (0, 1):
        size = 8 * MIB
        text += (
            f"rank {rank} {{\nl1: send {size}b to {1 - rank}\nl2: recv {size}b from {1 - rank}\nl2 requires l1\n}}\n"
        )
    path = tmp_path / "both.goal"
    path.write_text(text)
    assert main(["goal", "replay", str(path), "--fabric", "10g", "--results", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert "both.goal: ranks wait for each other for ever: rank" in error and len(error.strip().splitlines()) == 1


def test_a_transport_without_sends_is_refused_and_a_single_rank_is_simulated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "one.goal"
    path.write_text("num_ranks 1\nrank 0 {\ncalc 1000000\n}\n")
    assert replayed(path, capsys, "--fabric", "10g")["seconds"] == pytest.approx(1e-3)
    options = ["--fabric", "10g", "--transport", "horovod", "--results", str(tmp_path)]
    assert main(["goal", "replay", str(path), *options]) == 2
    error = capsys.readouterr().err
    assert "--transport horovod: has collectives alone" in error and len(error.strip().splitlines()) == 1


def test_a_graph_becomes_a_trace_and_a_trace_a_graph(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, folder, again = exported(tmp_path, 4), tmp_path / "trace", tmp_path / "again.goal"
    assert main(["goal", "convert", str(path), str(folder)]) == 0
    assert sorted(each.name for each in folder.iterdir()) == [f"graph.{rank}.et" for rank in range(4)]
    assert main(["goal", "convert", str(folder), str(again)]) == 0
    seconds = [replayed(each, capsys, "--fabric", "1g")["seconds"] for each in (path, folder, again)]
    assert seconds[1] == pytest.approx(seconds[0]) and seconds[2] == pytest.approx(seconds[0])
    assert main(["goal", "convert", str(path), str(folder)]) == 2
    assert "trace: is there already; give a new folder" in capsys.readouterr().err


def test_what_a_collective_reduces_is_computed_by_its_receiver() -> None:
    graph = collective_graph(pattern_of("ring", "all_reduce", 4), 64.0, gamma=1e-9)
    reduced = graph.of_kind(Kind.COMPUTE)
    assert len(reduced) == 12 and graph.amount[reduced].tolist() == pytest.approx([16e-9] * 12)


def test_a_step_of_a_training_case_is_written_with_collectives_or_as_messages(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "suites" / "mine"
    folder.mkdir(parents=True)
    base = (
        "{program: train, workload: {name: cd_dnn, width: 0.25}, minibatch: 64, strategy: sync_overlap, steps: 1, "
        "ranks: 2, fabric: {name: simulated, cluster: ethernet_10g}, compute.profile: xeon_e5_2698v3_x2, "
        "compute.efficiency: 0.5}"
    )
    (folder / "suite.yaml").write_text(
        f"suite: mine\ntitle: mine\nexperiments:\n  e:\n    summary: s\n    base: {base}\n"
        "    arms: {tcp: {transport: tcp, collective: ring}}\n"
        "    sizes: {smoke: {launches: 1, matrix: [{arms: [tcp]}]}}\n"
    )
    suites = ["--suites", str(tmp_path / "suites"), "--results", str(tmp_path)]
    for out in ("step.goal", "traces"):
        assert main(["goal", "step", "", "--ranks", "4", "--out", str(tmp_path / out), *suites]) == 0
        assert f"{out}: one step of cd_dnn on 4 ranks, " in capsys.readouterr().out
    messages, calls = (replayed(tmp_path / out, capsys, "--fabric", "10g") for out in ("step.goal", "traces"))
    assert messages["messages"] > 0 == calls["messages"]
    assert messages["seconds"] == pytest.approx(calls["seconds"], rel=0.05), "what is reduced costs as on this core"
    folded = replayed(tmp_path / "step.goal", capsys, "--fabric", "10g", "--replicas", "4")
    assert folded["seconds"] == pytest.approx(messages["seconds"], rel=1e-9)
    assert main(["goal", "step", "zz", "--out", str(tmp_path / "no.goal"), *suites]) == 2
    assert "begins no case" in capsys.readouterr().err
