"""All arms of `make bench` run under one congestion control, and a run where they did not says so."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import network
from benchmarks.interleaved import Measured
from benchmarks.table import markdown, summary
from scaleproof.core.handshake import LOOPBACK_CONGESTION

ROOT = Path(__file__).resolve().parents[3]
SEEN = """
import json, socket
from benchmarks import network
with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
    used = client.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(bytes(1)).decode()
print(json.dumps([used, network.facts(), [name for _, name in socket.if_nameindex()]]))
"""


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False)


def test_every_socket_of_the_command_has_the_congestion_control_of_ours_on_a_loopback_of_its_own() -> None:
    done = run("benchmarks.network", sys.executable, "-c", SEEN)
    assert done.returncode == 0, done.stderr
    used, facts, interfaces = json.loads(done.stdout)
    if facts["namespace"] != network.OWN:
        pytest.skip(f"needs network namespaces: {facts['namespace']}")
    assert used == facts["congestion_control"] == facts["congestion_control_of_ours"] == LOOPBACK_CONGESTION
    assert "lo" in interfaces and "eth0" not in interfaces


def test_a_namespace_keeps_the_congestion_control_that_its_maker_names() -> None:
    """As the one of TensorFlow's peer within that of the benchmarks."""
    inner = "from benchmarks import network as n; n.own_network(n.congestion()); print(n.congestion())"
    done = run("benchmarks.network", sys.executable, "-c", inner)
    if "did not run alike" in done.stderr:
        pytest.skip("needs network namespaces")
    assert done.stdout.strip() == LOOPBACK_CONGESTION, done.stderr


def test_without_namespaces_the_command_runs_and_the_record_names_both_and_why(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(congestion: str) -> None:
        raise OSError(1, "the kernel allows no network namespace")

    ran: list[list[str]] = []
    monkeypatch.setattr(network, "own_network", refused)
    monkeypatch.setattr(network, "congestion", lambda: "bbr")
    monkeypatch.setattr(os, "execvp", lambda file, command: ran.append(command))
    monkeypatch.setattr(sys, "argv", ["network", "python", "-m", "pytest"])
    monkeypatch.setenv(network.NAMESPACE, "")
    network.main()
    assert ran == [["python", "-m", "pytest"]]
    said = network.statement(network.facts())
    assert capsys.readouterr().err == f"benchmarks.network: {said}\n"
    assert "tcp had congestion control reno, those of gRPC and of peers bbr (the kernel allows no network" in said
    result = summary(Measured(launches=1, seed=0), {})
    assert result["network"]["congestion_control"] == "bbr" and said in markdown(result)


def test_a_command_that_is_not_there_is_one_line() -> None:
    done = run("benchmarks.network", "no-such-command")
    assert done.stderr.splitlines()[-1] == "benchmarks.network: no-such-command: No such file or directory"


def test_make_bench_runs_in_it() -> None:
    [line] = [line for line in (ROOT / "Makefile").read_text().splitlines() if "pytest benchmarks" in line]
    assert "python -m benchmarks.network python -m pytest benchmarks" in line
