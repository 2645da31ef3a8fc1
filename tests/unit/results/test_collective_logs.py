"""Logs of nccl-tests and OSU: read as printed, kept, shown beside a prediction; a file that is neither is one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scaleproof.cli import main
from scaleproof.results.collective_logs import read_log
from scaleproof.results.imported_logs import kept_logs, predicted_call
from scaleproof.simulate.nccl.prediction import predict
from scaleproof.spec.errors import SpecError
from scaleproof.spec.gpu_node import gpu_node

TEXT = """\
# nccl-tests version 2.17.6 nccl-headers=22807 nccl-library=22807
# Collective test starting: all_reduce_perf
# nThread 1 nGpus 1 minBytes 1024 maxBytes 1073741824 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1
# Using devices
#  Rank  0 Group  0 Pid 223120 on node-a device  0 [0000:1b:00] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid 223121 on node-b device  0 [0000:1b:00] NVIDIA H100 80GB HBM3
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)
           0             0     float     sum      -1     0.20    0.00    0.00       0     0.20    0.00    0.00       0
        1024           256     float     sum      -1    16.43    0.06    0.11       0    16.40    0.06    0.11       0
  1073741824     268435456     float     sum      -1   4200.5  255.62  479.28     N/A   4200.1  255.65  479.30     N/A
# Out of bounds values : 0 OK
"""
OSU = """\
# OSU MPI Allreduce Latency Test v7.4
# Size       Avg Latency(us)
4                       2.31
1048576              512.00
"""


NODES = TEXT.replace(
    "# Using devices\n",
    "# Using devices\n"
    + "".join(
        f"#  Rank {8 * node + gpu:2} Group  0 Pid {gpu} on node-{name} device  {gpu} "
        "[0000:1b:00] NVIDIA H100 80GB HBM3\n"
        for node, name in enumerate("ab")
        for gpu in range(1, 8)
    ),
)
"""The same log of all 8 GPUs of both nodes."""


def written(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "log"
    file.write_text(text)
    return file


def test_a_text_of_nccl_tests_gives_out_of_place_calls_and_where_they_ran(tmp_path: Path) -> None:
    log = read_log(written(tmp_path, TEXT))
    assert (log.tool, log.collective, log.gpus, log.nodes) == ("nccl-tests", "allreduce", 2, 2)
    assert [(call.nbytes, call.busbw) for call in log.calls] == [(1024, 0.11), (1 << 30, 479.28)]
    assert log.calls[0].seconds == pytest.approx(16.43e-6)


def test_json_of_nccl_tests_gives_the_same(tmp_path: Path) -> None:
    data = {
        "devices": [{"hostname": "node-a"}, {"hostname": "node-a"}],
        "results": [{"size": 1024, "out_of_place": {"time": 16.43, "alg_bw": 0.06, "bus_bw": 0.11}}],
    }
    log = read_log(written(tmp_path, json.dumps(data)), "all_gather")
    assert (log.collective, log.gpus, log.nodes) == ("allgather", 2, 1)
    assert [(call.nbytes, call.busbw) for call in log.calls] == [(1024, 0.11)]


def test_osu_prints_latencies_only(tmp_path: Path) -> None:
    log = read_log(written(tmp_path, OSU))
    assert (log.tool, log.collective) == ("OSU", "allreduce")
    assert [(call.nbytes, call.seconds, call.busbw) for call in log.calls] == [
        (4, pytest.approx(2.31e-6), None),
        (1 << 20, pytest.approx(512e-6), None),
    ]


@pytest.mark.parametrize(
    ("text", "collective", "message"),
    [
        ("hello\n", "all_reduce", "no line of results"),
        (TEXT.replace("# Collective test starting: all_reduce_perf\n", ""), None, "give --collective"),
        (TEXT, "all_reduced", "unknown collective 'all_reduced'; known: all_reduce,"),
        (TEXT.replace("16.43", "fast"), None, r"log:12: no result of nccl-tests: 'fast'"),
        ('{"results": [{"size": 8}]}', "all_reduce", "no JSON of nccl-tests: 'out_of_place' is missing"),
        ('{"results": 3}', "all_reduce", "no JSON of nccl-tests"),
        ("{", "all_reduce", "no JSON of nccl-tests"),
        ("# OSU MPI Barrier Latency Test\n", None, "OSU's Barrier is no collective here"),
    ],
)
def test_a_file_that_is_no_log_is_one_line(tmp_path: Path, text: str, collective: str | None, message: str) -> None:
    with pytest.raises(SpecError, match=message) as error:
        read_log(written(tmp_path, text), collective)
    assert "\n" not in str(error.value)


def test_a_missing_file_and_binary_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="No such file"):
        read_log(tmp_path / "absent")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00\x81")
    with pytest.raises(SpecError, match="no text"):
        read_log(tmp_path / "binary")


def imported(tmp_path: Path, text: str, *arguments: str) -> int:
    return main(["import", "nccl-tests", str(written(tmp_path, text)), "--results", str(tmp_path / "kept"), *arguments])


def test_an_import_is_kept_and_stands_beside_the_prediction(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert imported(tmp_path, NODES, "--machine", "p5") == 0
    printed = capsys.readouterr().out
    assert "2 sizes on 2 nodes of p5" in printed and "nvls_tree Simple" in printed
    kept = json.loads((tmp_path / "kept" / "imported" / "p5.allreduce.n2.json").read_text())
    assert (kept["machine"], kept["nodes"], kept["gpus"], len(kept["calls"])) == ("p5", 2, 16, 2)
    assert imported(tmp_path, TEXT, "--machine", "mine") == 0
    assert "mine is no node type" in capsys.readouterr().out
    assert imported(tmp_path, TEXT, "--machine", "roce_server_p100") == 0
    assert "no links inside roce_server_p100" in capsys.readouterr().out


def test_what_ran_with_another_algorithm_is_kept_beside_the_first(tmp_path: Path) -> None:
    for algorithm in ("ring", "tree"):
        assert imported(tmp_path, NODES, "--machine", "p5", "--algorithm", algorithm) == 0
    logs = kept_logs(tmp_path / "kept")
    assert [(log.name, log.algorithm) for log in logs] == [
        ("p5.allreduce.n2.ring", "ring"),
        ("p5.allreduce.n2.tree", "tree"),
    ]
    predictions = [predicted_call("p5", "allreduce", 2, 1 << 30, log.algorithm) for log in logs]
    assert [call.algorithm for call in predictions if call] == ["ring", "tree"]


def test_a_call_is_predicted_over_the_gpus_that_took_part() -> None:
    few, all_of_them = (predicted_call("p5", "allgather", 1, 1 << 30, gpus=gpus) for gpus in (4, None))
    whole = predict(gpu_node("p5"), "allgather", 1, 1 << 30)
    assert few is not None and all_of_them is not None
    assert all_of_them.seconds == whole.seconds > few.seconds
    assert predicted_call("p5", "allreduce", 1, 1 << 30, gpus=1) is None
    assert predicted_call("mine", "allreduce", 1, 1 << 30) is None


@pytest.mark.parametrize(("nbytes", "factor"), [(1 << 20, 2.0), (64 << 20, 1.4)])
def test_a_prediction_has_the_bounds_that_its_suite_accepts(nbytes: int, factor: float) -> None:
    call = predicted_call("p5", "allreduce", 2, nbytes)
    assert call is not None
    assert (call.low, call.high) == (pytest.approx(call.busbw / factor), pytest.approx(call.busbw * factor))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--machine", "a100x8", "--nodes", "2"], "several nodes need network_gbit"),
        (["--machine", "p5", "--nodes", "1"], "16 GPUs on 1 node, and p5 has 8 each: give --nodes"),
        (["--machine", "../p5"], "--machine '../p5': write letters"),
        (["--machine", "p5", "--algorithm", "rng"], "unknown 'rng'; did you mean 'ring'?"),
        (["--machine", "p5", "--nodes", "0"], "--nodes 0: give at least one"),
    ],
)
def test_an_import_that_cannot_be_is_one_line_and_keeps_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert imported(tmp_path, NODES, *arguments) == 2
    printed = capsys.readouterr().err
    assert message in printed and printed.count("\n") == 1
    assert not (tmp_path / "kept").exists()


def test_a_kept_file_that_is_none_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "imported").mkdir()
    (tmp_path / "imported" / "p5.json").write_text('{"tool": "nccl-tests"}')
    with pytest.raises(SpecError, match=r"p5.json: import the log again") as refused:
        kept_logs(tmp_path)
    assert "\n" not in str(refused.value)
