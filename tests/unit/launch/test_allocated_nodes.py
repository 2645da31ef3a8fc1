"""The nodes that a run is given, and the placement of its cases on them."""

from __future__ import annotations

import os
import re
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from scaleproof.launch.launchers.torchrun import torchrun
from scaleproof.launch.nodes import host_list, slurm, ssh
from scaleproof.launch.nodes.allocated_nodes import (
    AllocatedNodes,
    Node,
    NodePlacement,
    discover_nodes,
    lost_node,
    machine_of,
)
from scaleproof.launch.nodes.discovery import NodeAnswer, answer_line, answers_in
from scaleproof.launch.nodes.forwarded_variables import carried, for_starter
from scaleproof.launch.nodes.host_list import Host
from scaleproof.launch.nodes.requested_nodes import Allocation, NodeOptions, options, requested_allocation
from scaleproof.launch.nodes.srun import commands
from scaleproof.launch.nodes.start_ranks import command
from scaleproof.launch.obstacle import Obstacle
from scaleproof.spec.errors import SpecError
from tests.short_form import ring_case

JOB = (
    "JobId=17 JobName=x UserId=root(0) Requeue=1 Restarts=2 JobState=RUNNING Partition=long NodeList=n[1-3] "
    "BatchHost=n1 NumNodes=3 NumCPUs=8 NumTasks=3 "
    "CPUs/Task=1 JOB_GRES=(null) Nodes=n1 CPU_IDs=0-1 Mem=0 GRES= Nodes=n[2-3] CPU_IDs=0,2-3 Mem=0 GRES= Command=(null)"
)
SCONTROL = """#!/bin/sh
case "$2" in
  job) echo "{job}" ;;
  hostnames) case "$3" in 'n[1-3]') printf 'n1\\nn2\\nn3\\n' ;; 'n[2-3]') printf 'n2\\nn3\\n' ;; esac ;;
  topology)
    echo 'SwitchName=left Level=0 Nodes=n1'; echo 'SwitchName=right Level=0 Nodes=n[2-3]'
    echo 'SwitchName=top Level=1 Nodes=n[1-3] Switches=left,right' ;;
  config) echo 'ClusterName             = lab' ;;
esac
"""


def case(**fields: Any) -> Any:
    return ring_case(**{"ranks": 4, **fields})


def answer(name: str, boot: str = "", cores: int = 2, **more: Any) -> NodeAnswer:
    own = {
        "host": name,
        "boot": boot or name,
        "machine": "m",
        "cores": [*range(cores)],
        "interfaces": {"lo": "127.0.0.1", "eth0": f"10.0.0.{name[1:]}"},
    }
    return NodeAnswer(**{**own, "own": "eth0", "code": "", "shared": True, **more})


def allocated(*answers: NodeAnswer, slots: int = 2, **more: Any) -> AllocatedNodes:
    allocation = Allocation("hosts", "", tuple(Host(node_answer.host, slots) for node_answer in answers), "ssh", **more)
    return AllocatedNodes(
        allocation, tuple(Node(node_answer.host, slots, "", node_answer) for node_answer in answers), "eth0"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a:4,b:2", [("a", 4), ("b", 2)]),
        ("a, b", [("a", None), ("b", None)]),
        ("someone@10.0.0.7:3", [("someone@10.0.0.7", 3)]),
    ],
)
def test_a_host_list_names_hosts_and_how_many_ranks_each_takes(text, expected):
    assert [(host.name, host.slots) for host in host_list.parse(text)] == expected


def test_a_list_may_be_longer_than_a_name_of_a_file():
    assert len(host_list.parse(",".join(f"node{number:04}:16" for number in range(2000)))) == 2000


def test_a_hosts_file_may_be_one_of_open_mpi(tmp_path):
    (tmp_path / "hosts").write_text("# all of them\na slots=4\nb:2  # the slow one\n\nc\n")
    assert [(host.name, host.slots) for host in host_list.parse(str(tmp_path / "hosts"))] == [
        ("a", 4),
        ("b", 2),
        ("c", None),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a:0", "'0' is no number of slots"),
        ("a:two", "'two' is no number of slots"),
        ("a:1,,b", "has an empty entry"),
        ("", "names no host"),
        ("a:1,b:1,a:2", "host 'a' is listed twice"),
        ("a;reboot:1", "is no host"),
        ("-oProxyCommand=x:1", "is no host"),
    ],
)
def test_a_wrong_host_is_one_line_that_names_it(text, message):
    with pytest.raises(SpecError, match=re.escape(message)) as wrong:
        host_list.parse(text)
    assert "\n" not in str(wrong.value)


@pytest.mark.parametrize(
    ("options", "variables", "message"),
    [
        (NodeOptions(launcher="srunn"), {}, "unknown launcher 'srunn'; did you mean 'srun'?"),
        (NodeOptions(launcher="srun"), {}, "outside of a Slurm job"),
        (NodeOptions(launcher="ssh"), {}, "without nodes: neither --hosts nor a Slurm job"),
        (NodeOptions(hosts="a:1", launcher="local"), {}, "starts ranks on this machine alone"),
        (NodeOptions(hosts="a:1", launcher="srun"), {}, "launcher 'srun' takes the nodes of the Slurm job"),
        (NodeOptions(hosts="a:1", rendezvous="etcd"), {}, "unknown rendezvous of torchrun 'etcd'"),
        (NodeOptions(hosts="a:1"), {"PATH": ""}, "no program 'ssh'"),
    ],
)
def test_options_that_do_not_fit_together_are_a_one_line_error(options, variables, message, monkeypatch):
    for name in ("SCALEPROOF_HOSTS", "SCALEPROOF_LAUNCHER", "SCALEPROOF_SSH", "SLURM_JOB_ID"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SpecError, match=re.escape(message)):
        requested_allocation(options, variables)


def test_without_hosts_and_without_a_job_there_is_this_machine_alone():
    assert requested_allocation(NodeOptions(), {}) is None


def test_variables_stand_for_options_and_options_go_first(monkeypatch):
    monkeypatch.setenv("SCALEPROOF_SSH", "/bin/sh")
    allocation = requested_allocation(
        NodeOptions(interface="ib0"),
        {"SCALEPROOF_HOSTS": "a:1,b:1", "SCALEPROOF_LAUNCHER": "torchrun", "SCALEPROOF_INTERFACE": "eth9"},
    )
    assert allocation is not None and (
        allocation.starter,
        allocation.launcher,
        allocation.interface,
        len(allocation.hosts),
    ) == (
        "ssh",
        "torchrun",
        "ib0",
        2,
    )


def test_the_options_of_an_allocation_can_be_typed_again(monkeypatch):
    monkeypatch.setenv("SCALEPROOF_SSH", "/bin/sh")
    arguments = ["--hosts", "a:1,b", "--launcher", "torchrun", "--interface", "ib0", "--rendezvous", "c10d"]
    allocation = requested_allocation(
        NodeOptions(hosts="a:1,b", launcher="torchrun", interface="ib0", rendezvous="c10d"), {}
    )
    assert allocation is not None and options(allocation) == arguments
    assert options(Allocation("slurm", "lab", (Host("n1"),), "srun")) == []


@pytest.fixture
def scontrol(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Slurm that knows one job."""
    for name, text in {"scontrol": SCONTROL.format(job=JOB), "srun": "#!/bin/sh\n"}.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")


def test_a_slurm_job_is_known_by_its_number_alone(scontrol):
    allocation = requested_allocation(NodeOptions(), {"SLURM_JOB_ID": "17"})
    assert allocation is not None and (allocation.kind, allocation.launcher, allocation.cluster) == (
        "slurm",
        "srun",
        "lab",
    )
    assert allocation.job is not None and (allocation.job.id, allocation.job.partition, allocation.job.restarts) == (
        "17",
        "long",
        2,
    )
    assert [(host.name, host.slots, host.switch) for host in allocation.hosts] == [
        ("n1", 2, "top.left"),
        ("n2", 3, "top.right"),
        ("n3", 3, "top.right"),
    ]


@pytest.mark.parametrize(("around", "alone"), [({"SLURMD_NODENAME": "n1"}, True), ({}, False)])
def test_a_job_of_one_node_is_this_machine_only_where_this_process_runs_on_it(scontrol, tmp_path, around, alone):
    """`salloc -N1` may leave the shell on the login node."""
    job_of_one_node = JOB.replace("n[1-3]", "n1").replace(" Nodes=n[2-3] CPU_IDs=0,2-3", "")
    (tmp_path / "scontrol").write_text(SCONTROL.format(job=job_of_one_node))
    allocation = requested_allocation(NodeOptions(), {"SLURM_JOB_ID": "17", **around})
    assert (allocation is None) == alone and (
        alone or (allocation is not None and allocation.launcher == "srun" and len(allocation.hosts) == 1)
    )


def test_nodes_that_srun_could_not_reach_are_read_from_its_messages():
    output = (
        "srun: error: Task launch for StepId=7.0 failed on node n2: Communication connection failure\n"
        "srun: error: Application launch failed: x\n"
    )
    assert slurm.unreached(output) == ["n2"] and slurm.unreached("srun: error: n1: task 0: Killed") == []


def test_a_remote_line_means_the_same_to_any_login_shell(monkeypatch):
    monkeypatch.setenv("SCALEPROOF_SSH", "reach")
    [(argv, _)] = ssh.commands(["elsewhere"], ["echo", "two words"])
    assert (
        argv[:2] == ["reach", "elsewhere"]
        and argv[2].startswith("exec /bin/sh -c '")
        and "2>/dev/null" not in argv[2].partition("'")[0]
    )
    assert (
        subprocess.run(["/bin/bash", "-c", argv[2]], capture_output=True, text=True, check=True).stdout
        == "two words --node 0\n"
    )


def test_srun_inherits_no_variables_of_the_surrounding_step():
    environment = slurm.scrubbed(
        {
            "SLURM_JOB_ID": "1",
            "SLURM_CONF": "/etc/x",
            "SLURM_NTASKS": "1",
            "SLURM_CPU_BIND": "quiet",
            "PMIX_RANK": "0",
            "PATH": "/bin",
        }
    )
    assert environment == {"SLURM_JOB_ID": "1", "SLURM_CONF": "/etc/x", "PATH": "/bin"}
    [(argv, numbers)] = commands(["n1", "n3"], ["agent"], "17")
    assert (
        numbers == [0, 1]
        and {"--nodelist=n1,n3", "--overlap", "--ntasks-per-node=1", "--jobid=17"} <= set(argv)
        and argv[-1] == "agent"
    )


def test_concatenated_answers_are_split_and_incomplete_ones_waited_for():
    lines = [answer_line(answer(f"n{number + 1}"), number) for number in range(3)]
    answers = answers_in("a message of the day\n" + lines[1] + lines[0] + "\n\n" + lines[2][:-5], ["n1", "n2", "n3"])
    assert {name: node_answer.host for name, node_answer in answers.items()} == {"n1": "n1", "n2": "n2"}


def test_ranks_stand_in_blocks_on_as_many_nodes_as_there_are_ranks_at_most():
    nodes = allocated(answer("n1"), answer("n2"), answer("n3"))
    assert _ranks(nodes.placement_for(case(ranks=4))) == [("n1", (0, 1)), ("n2", (2,)), ("n3", (3,))]
    assert _ranks(nodes.placement_for(case(ranks=2))) == [("n1", (0,)), ("n2", (1,))]


def _ranks(placement: Any) -> list[tuple[str, tuple[int, ...]]]:
    assert isinstance(placement, NodePlacement)
    return [(node.name, ranks) for node, ranks in zip(placement.nodes, placement.ranks, strict=True)]


def test_more_ranks_than_slots_and_a_missing_interface_are_errors():
    nodes = allocated(answer("n1"), answer("n2"))
    too_many, no_interface = nodes.placement_for(case(ranks=6)), nodes.placement_for(case(interface="ib0"))
    assert isinstance(too_many, Obstacle) and isinstance(no_interface, Obstacle)
    assert "more than the nodes have slots (n1:2, n2:2)" in too_many.reason
    assert "has no interface 'ib0'" in no_interface.reason


def test_loopback_means_the_interface_between_nodes_and_nothing_of_the_case_changes():
    placement = allocated(answer("n1"), answer("n2")).placement_for(case())
    assert isinstance(placement, NodePlacement) and (placement.interface, placement.addresses) == (
        "eth0",
        ["10.0.0.1", "10.0.0.2"],
    )
    assert placement.as_record().nodes[1].ranks == [2, 3] and case().interface == "lo"


def test_nodes_of_one_boot_share_its_cores_and_are_evidence_of_an_emulated_network():
    apart, together = allocated(answer("n1"), answer("n2")), allocated(answer("n1", "b"), answer("n2", "b"))
    placements = [nodes.placement_for(case(ranks=4)) for nodes in (apart, together)]
    assert [
        (placement.evidence, placement.cores, placement.oversubscribed(1))
        for placement in placements
        if isinstance(placement, NodePlacement)
    ] == [
        ("measured", 4, False),
        ("emulated", 2, True),
    ]


def test_after_a_lost_node_only_cases_that_keep_their_number_of_nodes_go_on():
    nodes = allocated(answer("n1"), answer("n2"), answer("n3")).without("n2")
    assert _ranks(nodes.placement_for(case(ranks=2))) == [("n1", (0,)), ("n3", (1,))]
    assert nodes.waits(case(ranks=3)) and not nodes.waits(case(ranks=2))
    assert not nodes.waits(case(ranks=8)), "what never had room does not wait for it"


def test_the_machine_is_the_kind_and_number_of_nodes_whatever_their_names():
    first, later = allocated(answer("n1"), answer("n2")), allocated(answer("n7"), answer("n5"))
    assert first.machine == later.machine == first.without("n1").machine
    assert (
        first.machine
        != allocated(answer("n1"), answer("n2"), answer("n3")).machine
        != allocated(answer("n1"), answer("n2", machine="x")).machine
    )
    assert (
        machine_of(case(), first)
        == first.machine
        != machine_of(case(fabric="netns"), first)
        == machine_of(case(), None)
    )


def test_nodes_without_a_common_interface_are_an_error_that_names_them(monkeypatch, tmp_path):
    answers = [answer("n1"), answer("n2", own="ens3", interfaces={"ens3": "10.0.0.2"})]
    monkeypatch.setattr("scaleproof.launch.nodes.allocated_nodes.discover", lambda allocation, results: answers)
    allocation = Allocation("hosts", "", (Host("n1"), Host("n2")), "ssh")
    with pytest.raises(SpecError, match=r"n1: eth0, n2: ens3.*--interface"):
        discover_nodes(allocation, tmp_path)


def test_a_record_names_the_node_whose_loss_ended_it():
    from tests.unit.records import record

    failure = {
        "code": "node_lost",
        "rank": 2,
        "message": "its connection closed",
        "step": 0,
        "operation": "",
        "advice": "",
        "node": "n3",
    }
    assert lost_node(record(status="failed", failure=failure)) == "n3"
    assert lost_node(record()) == ""


def test_secrets_and_node_specific_variables_are_not_sent_to_nodes():
    variables = {
        "OMP_NUM_THREADS": "1",
        "HF_TOKEN": "x",
        "AWS_SECRET_ACCESS_KEY": "x",
        "SLURM_NTASKS": "1",
        "TMPDIR": "/x",
        "SCALEPROOF_NODE": "0",
    }
    assert carried(variables) == {"OMP_NUM_THREADS": "1"}
    assert for_starter("srun", {"HF_TOKEN": "x", "TOKENIZERS_PARALLELISM": "0", "SLURM_JOB_ID": "7"}) == {
        "TOKENIZERS_PARALLELISM": "0",
        "SLURM_JOB_ID": "7",
    }
    assert for_starter("ssh", {"SSH_ASKPASS": "/x", "STS_SESSION_TOKEN": "x"}) == {
        "SSH_ASKPASS": "/x",
        "STS_SESSION_TOKEN": "x",
    }


def test_torchrun_meets_at_the_first_node_and_restarts_nothing():
    options = {
        kind: torchrun("id", 1, [[0, 1], [2]], ["10.0.0.1", "10.0.0.2"], 4000, kind, ["worker"])
        for kind in ("static", "c10d")
    }
    assert {"--nnodes=2", "--nproc-per-node=1", "--max-restarts=0"} <= set(options["static"]) & set(options["c10d"])
    assert {"--node-rank=1", "--master-addr=10.0.0.1", "--master-port=4000"} <= set(options["static"])
    assert {"--rdzv-backend=c10d", "--rdzv-endpoint=10.0.0.1:4000", "--rdzv-id=id", "--rdzv-conf=is_host=0"} <= set(
        options["c10d"]
    )


def test_mpirun_runs_on_the_first_node_and_reaches_others_by_remote_commands():
    header = {"inner": "mpirun", "hosts": ["u@n1", "n2"], "ranks": [[0, 1], [2]], "interface": "eth0"}
    first = command(header, 0, Path("f"), Path("s"), 0)
    assert first is not None and "n1:2,n2:1" in first and "scaleproof.launch.nodes.remote_command" in " ".join(first)
    assert command(header, 1, Path("f"), Path("s"), 0) is None


def test_a_machine_knows_itself_without_a_remote_shell():
    from scaleproof.launch.nodes import ssh

    [(local_command, _), (remote_command, _)] = ssh.commands([socket.gethostname(), "elsewhere"], ["agent"])
    assert (
        local_command == ["agent", "--node", "0"]
        and remote_command[-2] == "elsewhere"
        and remote_command[-1].endswith("exec agent --node 1'")
    )
