"""`scaleproof plan`: frontiers on the terminal and as a picture, caps, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from scaleproof.cli import main

VGG = ["plan", "--workload", "vgg_a", "--batch", "512", "--node", "v100hcm"]


def test_a_frontier_is_printed_and_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "plan.svg"
    assert main([*VGG, "--devices", "4,8", "--out", str(picture)]) == 0
    printed = capsys.readouterr().out
    assert "4 devices" in printed and "8 devices" in printed and "memory of a device (GB)" in printed
    assert "8 devices" in picture.read_text()


def test_the_fastest_that_fits_names_how_each_layer_is_divided(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*VGG, "--devices", "2,8", "--memory", "4"]) == 0
    printed = capsys.readouterr().out
    assert "does not fit" in printed, "two devices do not"
    assert "on 8 devices" in printed and "conv1 to pool5" in printed and "8 x 1 x 1" in printed


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--memory", "0.1", "--devices", "2"], "--memory 0.1: no strategy fits on 2 devices; 10.5 would do"),
        (["--devices", "two"], "--devices 'two': write numbers, as 4,8,16"),
        (["--devices", "16"], "v100hcm has no network_gbit, and 16 devices are more than its 8 GPUs"),
        (["--node", "xeon_e5_2698v3_x2"], "--efficiency: say which share"),
        (["--node", "xeon_e5_2698v3_x2", "--efficiency", "0.5"], "--cluster: name the links between nodes, as 25g"),
        (["--node", "v100"], "unknown node type 'v100'"),
        (["--workload", "vgg"], "unknown workload 'vgg'; did you mean"),
        (["--workload", "mine:network"], "no module 'mine' here"),
        (["--cluster", "25q", "--devices", "16"], "unknown fabric '25q'"),
        (["--out", "plan.txt"], "--out plan.txt: a picture ends in .png, .svg, .pdf"),
    ],
)
def test_what_cannot_be_planned_is_one_line(
    options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*VGG, *options]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.strip().splitlines()) == 1


MODULE = """
from torch import nn

def network():
    return nn.Sequential(nn.Linear(1024, 4096), nn.ReLU(), nn.LayerNorm(4096), nn.Linear(4096, 1000))
"""
CLUSTER = """
summary: a switch
source: made up for a test
star: {gbit: 10, delay_us: 5}
"""


def test_a_module_of_your_own_is_planned_on_a_cluster_of_your_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_module_of_plan.py").write_text(MODULE)
    (tmp_path / "mine.yaml").write_text(CLUSTER)
    monkeypatch.chdir(tmp_path)
    plan = ["plan", "--workload", "own_module_of_plan:network", "--input", "1024", "--batch", "64", "--node", "v100hcm"]
    assert main([*plan, "--cluster", "mine.yaml", "--devices", "8,16", "--memory", "0.015"]) == 0
    printed = capsys.readouterr().out
    assert "on 16 devices" in printed and "does not fit" in printed, "weights in halves would not do"
    assert "1 x 16 x 1" in printed, "the matrix is divided by rows"


def test_a_slower_network_between_nodes_takes_longer(capsys: pytest.CaptureFixture[str]) -> None:
    fastest = []
    for network in ("100g", "1g"):
        assert main([*VGG, "--devices", "16", "--memory", "16", "--cluster", network]) == 0
        table = capsys.readouterr().out.splitlines()
        fastest.append(float(next(line.split()[-1] for line in table if line.split()[:1] == ["16"])))
    assert fastest[1] > 1.5 * fastest[0]
