"""A node of a Slurm cluster that is really slower: named before the experiment and in its records, and no other."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from scaleproof.fabric.netns.core_quota import Quota
from scaleproof.fabric.small_clusters import SmallCluster
from scaleproof.launch.preflight.slow_nodes import CODE
from scaleproof.record.store import Store
from scaleproof.report.nodes import lines
from tests.cluster.on_slurm import ROOT, WITHIN_S
from tests.family import family
from tests.waiting import wait_until
from tools.small_cluster.cluster import slurm_output

NODE, CORES = "node3", 0.3
ENDED = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL")


@pytest.fixture
def slowed(cluster: SmallCluster) -> Iterator[str]:
    """Slurm's daemon of a node, and all that it starts, get a small part of a core."""
    [daemon] = family(cluster.pid, "slurmd", "-D", "-N", NODE)
    quota = Quota(f"scaleproof-{cluster.name}", 1, CORES)
    if quota.why:
        pytest.skip(f"not runnable here: control groups cannot be made: {quota.why}")
    (quota.folder / "node0" / "cgroup.procs").write_text(str(daemon.pid))
    yield NODE
    (quota.folder.parent / "cgroup.procs").write_text(str(daemon.pid))
    quota.remove()


@pytest.mark.timeout(300)
def test_a_slow_node_is_named_before_the_experiment_and_in_its_record(
    cluster: SmallCluster, slowed: str, tmp_path: Path
) -> None:
    results, output = tmp_path / "results", tmp_path / "said"
    command = (
        f"cd {ROOT} && {Path(sys.executable).with_name('scaleproof')} run das2016 collective --size ci --results "
        f"{results}"
    )
    arguments = ["sbatch", "--parsable", "-N4", "--ntasks-per-node=1", "-o", str(output), "--wrap", command]
    job = slurm_output(cluster, *arguments).strip()
    # `sbatch --wait` looks at longer and longer intervals, up to half a minute.
    state = partial(slurm_output, cluster, "squeue", "-h", "-t", "all", "-j", job, "-o", "%T")
    wait_until(lambda: state().strip() in ENDED, "the job has ended", WITHIN_S, every_s=0.2)
    text = output.read_text()
    assert f"nodes: {slowed} " in text and f"--exclude={slowed})" in text, text
    [record] = Store(results).records()
    [warning] = [warning for warning in record.warnings if warning.code == CODE]
    named, _, _ = warning.message.partition("; sniff test")
    assert {word for word in named.split() if word.startswith("node")} == {slowed}
    assert record.sniff is not None and [node.name for node in record.sniff.nodes] == [
        "node1",
        "node2",
        "node3",
        "node4",
    ]
    assert record.placement is not None and [node.name for node in record.placement.nodes] == ["node1", "node2"]
    assert any("node2" in line for line in lines(record))
    assert len(list((results / "sniffs").iterdir())) == 1
