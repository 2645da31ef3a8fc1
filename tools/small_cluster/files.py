"""The configuration of Slurm and munge that a small cluster runs with."""

from __future__ import annotations

import os
from pathlib import Path

import psutil

from scaleproof.fabric.small_clusters import HEAD, SAFE, SmallCluster

LEAF = 2
"""Nodes at one switch."""
SLURM = """\
ClusterName={name}
SlurmctldHost={head}({head_address})
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
TopologyPlugin=topology/tree
MpiDefault=none
MailProg=/bin/true
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
ReturnToService=2
# Snakemake asks squeue for jobs that have ended; 300 s, Slurm's default, is too short for what waits long between two
# looks.
MinJobAge=3600
KillWait=10
SlurmctldTimeout=30
SlurmdTimeout=20
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,bf_interval=1,max_rpc_cnt=0
"""
CGROUP = """\
# slurmd always loads a cgroup plugin; v1 with nothing constrained loads where /sys/fs/cgroup is not as it expects.
CgroupPlugin=cgroup/v1
CgroupAutomount=no
ConstrainCores=no
ConstrainRAMSpace=no
"""
MPI = """\
# Nodes share /tmp here, and the second one would find the first one's folder there.
PMIxCliTmpDirBase=/dev/shm
"""


def switches(cluster: SmallCluster) -> dict[str, list[str]]:
    """Nodes by the switch that they are attached to: `leaf1` has the first two."""
    return {f"leaf{start // LEAF + 1}": cluster.names[start : start + LEAF] for start in range(0, cluster.nodes, LEAF)}


def write_files(cluster: SmallCluster) -> None:
    """Write all configuration files to the cluster's folder."""
    folder, etc = cluster.folder, cluster.folder / "etc"
    for name in ("etc", "log", "state", "dev", *(f"spool/{node}" for node in cluster.names)):
        (folder / name).mkdir(SAFE, parents=True)
    key = etc / "munge.key"
    key.touch(mode=0o400)
    key.write_bytes(os.urandom(128))
    values = {"name": cluster.name, "head": HEAD, "head_address": cluster.address(HEAD), "folder": folder}
    cluster.configuration.write_text(SLURM.format(**values) + "\n".join([*_nodes(cluster), ""]))
    (etc / "cgroup.conf").write_text(CGROUP)
    (etc / "topology.conf").write_text(_topology(cluster))
    if list(Path("/usr/lib").glob("*/pmix2/lib/libpmix.so*")):
        (etc / "mpi.conf").write_text(MPI)
    if cluster.gpus:
        for number in range(cluster.gpus):
            os.mknod(folder / "dev" / f"gpu{number}", 0o20666, os.makedev(1, 3))
        last = cluster.gpus - 1
        (etc / "gres.conf").write_text(f"Name=gpu File={folder}/dev/gpu{f'[0-{last}]' if last else '0'}\n")


def _nodes(cluster: SmallCluster) -> list[str]:
    memory = psutil.virtual_memory().total // 2**20 // cluster.nodes
    gpus = f" Gres=gpu:{cluster.gpus}" if cluster.gpus else ""
    lines = ["GresTypes=gpu"] if cluster.gpus else []
    for leaf, names in switches(cluster).items():
        for name in names:
            lines.append(
                f"NodeName={name} NodeAddr={cluster.address(name)} CPUs={cluster.cpus} RealMemory={memory} "
                f"Feature={leaf}{gpus} State=UNKNOWN"
            )
    return [*lines, f"PartitionName=main Nodes={','.join(cluster.names)} Default=YES MaxTime=INFINITE State=UP"]


def _topology(cluster: SmallCluster) -> str:
    leaves = switches(cluster)
    lines = [f"SwitchName={leaf} Nodes={','.join(names)}" for leaf, names in leaves.items()]
    return "\n".join([*lines, f"SwitchName=spine Switches={','.join(leaves)}", ""])
