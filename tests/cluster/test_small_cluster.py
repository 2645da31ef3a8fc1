"""A small cluster: its nodes have nothing in common but files, it says in one line what is wrong, and nothing is left
of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from scaleproof.doctor.leftovers import leftovers, remove_leftovers
from scaleproof.fabric.small_clusters import SmallCluster
from tests.waiting import wait_until
from tools.small_cluster import cluster as small
from tools.small_cluster.__main__ import main

ROOT = Path(__file__).parents[2]


def on(cluster: SmallCluster, node: str, command: str, capfd: pytest.CaptureFixture[str]) -> str:
    capfd.readouterr()
    assert small.run_on(cluster, node, ["sh", "-c", command]) == 0
    return capfd.readouterr().out.strip()


def processes_of(cluster: SmallCluster) -> list[int]:
    """All that have its folder in their command line."""
    return [
        process.pid
        for process in psutil.process_iter(["cmdline"])
        if str(cluster.folder) in " ".join(process.info["cmdline"] or [])
    ]


def wait_gone(cluster: SmallCluster) -> None:
    """Until no process of it is left."""
    wait_until(lambda: not processes_of(cluster), f"no process of cluster {cluster.name!r} is left", every_s=0.05)


def test_each_node_has_a_name_an_address_and_shared_memory_of_its_own(cluster, capfd):
    assert [on(cluster, name, "hostname", capfd) for name in cluster.names] == ["node1", "node2", "node3", "node4"]
    assert on(cluster, "node2", "hostname -I", capfd) == cluster.address("node2")
    assert on(cluster, "node2", "getent hosts node4", capfd).split() == [cluster.address("node4"), "node4"]
    on(cluster, "node1", "touch /dev/shm/of-node1", capfd)
    assert [on(cluster, name, "ls /dev/shm", capfd).split() for name in ("node1", "node2")] == [
        ["etc", "of-node1"],
        ["etc"],
    ]
    on(cluster, "node1", "rm /dev/shm/of-node1", capfd)


def test_slurm_knows_its_switches_kinds_of_nodes_and_gpus(cluster):
    assert small.slurm_output(cluster, "sinfo", "-h", "-N", "-o", "%N %f %G").splitlines() == [
        "node1 leaf1 gpu:2",
        "node2 leaf1 gpu:2",
        "node3 leaf2 gpu:2",
        "node4 leaf2 gpu:2",
    ]
    assert "SwitchName=spine Level=1 LinkSpeed=1 Nodes=node[1-4] Switches=leaf1,leaf2" in small.slurm_output(
        cluster, "scontrol", "show", "topology"
    )


def test_clusters_side_by_side_have_networks_of_their_own(cluster, limited):
    assert cluster.network != limited.cluster.network
    assert small.slurm_output(limited.cluster, "sinfo", "-h", "-o", "%D").strip() == "2"


def test_a_cluster_that_is_up_is_not_started_again(cluster, capsys):
    assert main(["--name", cluster.name, "up", "2"]) == 1
    assert capsys.readouterr().err.startswith(f"small_cluster: cluster '{cluster.name}' is already up with 4 nodes; ")


def test_a_link_has_the_rate_that_was_asked_for_and_a_cable_can_be_pulled(cluster, capfd):
    cluster_name = f"rate{os.getpid()}"
    assert main(["--name", cluster_name, "up", "2", "--rate", "100mbit"]) == 0
    slow = small.find(cluster_name)
    try:
        assert (
            "tbf 2: root" in (output := on(slow, "node1", "tc qdisc show dev eth0", capfd)) and "rate 100Mbit" in output
        )
        reached = [on(slow, "node1", calls(slow, "node2"), capfd)]
        for plugged in (False, True):
            small.change(slow, "node2", plugged=plugged)
            reached.append(on(slow, "node1", calls(slow, "node2"), capfd))
        assert reached == ["yes", "no", "yes"]
    finally:
        assert main(["--name", cluster_name, "down"]) == 0
    wait_gone(slow)
    assert not slow.folder.exists() and not Path(f"/sys/class/net/small{slow.network}").exists()


def calls(cluster: SmallCluster, name: str) -> str:
    """A command line that says whether a node's slurmd can be reached."""
    code = f"import socket; socket.create_connection(('{cluster.address(name)}', 6818), 1)"
    return f'{sys.executable} -c "{code}" 2>/dev/null && echo yes || echo no'


@pytest.mark.parametrize("victim", ["coordinator", "maker"])
def test_nothing_of_a_killed_cluster_runs_on_and_doctor_finds_its_folder(cluster, victim, tmp_path):
    name = f"{victim}{os.getpid()}"
    code = (
        f"import time\nfrom tools.small_cluster.cluster import up\nup(1, {name!r}, tied=True)\n"
        "print('up', flush=True)\ntime.sleep(60)"
    )
    maker = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert maker.stdout is not None and maker.stdout.readline() == "up\n"
        killed = small.find(name)
        os.kill(killed.pid if victim == "coordinator" else maker.pid, signal.SIGKILL)
        wait_gone(killed)
    finally:
        maker.kill()
        maker.wait()
    assert str(killed.folder) in [item["what"] for item in leftovers(tmp_path) if item["kind"] == "small cluster"]
    assert str(killed.folder) in remove_leftovers(tmp_path)
    assert not killed.folder.exists() and cluster.alive()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda patch: patch.setattr(small.os, "geteuid", lambda: 1000),
            "only root can make nodes out of namespaces; type the same with sudo",
        ),
        (
            lambda patch: patch.setattr(small.shutil, "which", lambda name, path: None if name == "slurmd" else name),
            "no program slurmd; type `apt-get install ",
        ),
    ],
)
def test_what_is_missing_is_one_line(monkeypatch, capsys, change, message):
    change(monkeypatch)
    assert main(["--name", "never", "up", "2"]) == 1
    printed = capsys.readouterr().err
    assert printed.startswith(f"small_cluster: {message}") and printed.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["status"], "small_cluster: no cluster 'never' is up; "),
        (["exec", "node1", "true"], "small_cluster: no cluster 'never' is up; "),
        (["up", "0"], "small_cluster: between 1 and 200 nodes, and a name of small letters and digits"),
    ],
)
def test_a_mistake_is_a_one_line_error(cluster, capsys, arguments, message):
    assert main(["--name", "never", *arguments]) == 1
    printed = capsys.readouterr().err
    assert printed.startswith(message) and printed.count("\n") == 1


def test_a_rate_that_is_none_is_named(capsys):
    with pytest.raises(SystemExit):
        main(["up", "2", "--rate", "fast"])
    assert "'fast' is no rate; write it like 100mbit or 1gbit" in capsys.readouterr().err
