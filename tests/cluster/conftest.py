"""Small clusters for the tests of this folder: a real Slurm in namespaces, made once. They end with its last test, and
with this process when it is killed."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from scaleproof.fabric.small_clusters import SmallCluster
from tests.cluster.on_slurm import SUITE, Project
from tools.small_cluster import cluster as small


def made(nodes: int, name: str) -> Iterator[SmallCluster]:
    if why := small.obstacle():
        if os.environ.get("SCALEPROOF_CI"):
            pytest.fail(f"tests of clusters must run in continuous integration: {why}")
        pytest.skip(f"no small cluster can be made here: {why}")
    cluster = small.up(nodes, f"{name}{os.getpid()}", cpus=4, gpus=2, tied=True)
    yield cluster
    small.down(cluster)


@pytest.fixture(scope="package")
def cluster() -> Iterator[SmallCluster]:
    """Four nodes."""
    yield from made(4, "four")


@pytest.fixture(scope="package")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """An experiment that meets its time limit, on two nodes of their own: a limit is a minute at least, so it is
    submitted before it is looked at."""
    for two in made(2, "two"):
        project = Project(tmp_path_factory.mktemp("limited") / "project", two, [SUITE])
        project.edit(
            {"retries: 2": "retries: 5"}
        )  # a machine that is busy with something else gets less done in a minute
        project.submit(f"results/tables/{SUITE.name}.limited.ci.parquet")
        yield project
        project.end()
