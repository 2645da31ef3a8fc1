"""Logs of nccl-tests and OSU: read as printed, kept, shown beside a prediction; a file that is neither is one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scaleproof.cli import main
from scaleproof.results.collective_logs import read_log
from scaleproof.spec.errors import SpecError

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


def test_an_import_is_kept_and_stands_beside_the_prediction(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["import", "nccl-tests", str(written(tmp_path, TEXT)), "--results", str(tmp_path / "results")]
    assert main([*arguments, "--machine", "p5"]) == 0
    printed = capsys.readouterr().out
    assert "2 sizes on 2 nodes of p5" in printed and "nvls_tree Simple" in printed
    kept = json.loads((tmp_path / "results" / "imported" / "p5.allreduce.n2.json").read_text())
    assert (kept["machine"], kept["nodes"], len(kept["calls"])) == ("p5", 2, 2)
    assert main([*arguments, "--machine", "mine"]) == 0
    assert "mine is no node type" in capsys.readouterr().out


def test_a_collective_that_nodes_cannot_run_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["import", "nccl-tests", str(written(tmp_path, TEXT)), "--results", str(tmp_path / "results")]
    assert main([*arguments, "--machine", "a100x8", "--nodes", "2"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
