"""`--workflow-profile profiles/kubernetes`: what the plugin sends is what Kubernetes publishes as its form, and the
pod's command does the rule's work.

The cluster is a stand-in on the loopback interface that runs a job's command as a process; no live cluster was at hand.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.integration import test_workflow
from tests.integration.test_workflow import ROOT, calls
from tests.unit.launch.kubernetes_forms import check

project = test_workflow.project
CONFIG = ROOT / "profiles" / "kubernetes" / "config.yaml"


class Cluster(ThreadingHTTPServer):
    """An API server that keeps what it was sent; `run` says whether a job's command is carried out."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), ApiRequestHandler)
        self.jobs: dict[str, Any] = {}
        self.codes: dict[str, int] = {}
        self.secrets: list[Any] = []
        self.deleted: list[str] = []
        self.path = ""


class ApiRequestHandler(BaseHTTPRequestHandler):
    """Four requests: make a secret, make a job, how is it, delete it."""

    server: Cluster

    def log_message(self, *arguments: Any) -> None:
        """Nothing on stderr."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path.endswith("/jobs"):
            name = body["metadata"]["name"]
            self.server.jobs[name] = body
            container = body["spec"]["template"]["spec"]["containers"][0]
            ended = subprocess.run(
                [*container["command"], *container["args"]], env={**os.environ, "PATH": self.server.path}, timeout=100
            )
            self.server.codes[name] = ended.returncode
        else:
            self.server.secrets.append(body)
        self._reply(body)

    def do_GET(self) -> None:
        name = self.path.removesuffix("/status").rpartition("/")[2]
        if name in self.server.codes:
            self._reply(
                {"metadata": {"name": name}, "status": {"succeeded" if self.server.codes[name] == 0 else "failed": 1}}
            )
        else:
            self._reply({"items": []})

    def do_DELETE(self) -> None:
        self.server.deleted.append(self.path.rpartition("/")[2].partition("?")[0])
        self._reply({"status": "Success"})

    def _reply(self, answer: Any) -> None:
        text = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def snakemake(
    project: Path, cluster: Cluster | None, *arguments: str, option: str = "--workflow-profile"
) -> subprocess.CompletedProcess[str]:
    """With a kubeconfig that names the stand-in; without one there is no cluster at all."""
    config = project / "kubeconfig"
    if cluster is not None:
        named = {"cluster": "c", "user": "u"}
        address = f"http://127.0.0.1:{cluster.server_address[1]}"
        parts = {"clusters": [{"name": "c", "cluster": {"server": address}}], "users": [{"name": "u", "user": {}}]}
        config.write_text(
            yaml.safe_dump(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "current-context": "x",
                    "contexts": [{"name": "x", "context": named}],
                    **parts,
                }
            )
        )
    path = f"{project / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT / "harness"), "KUBECONFIG": str(config)}
    if cluster is not None:
        cluster.path = path
    argv = [
        sys.executable,
        "-m",
        "snakemake",
        *arguments,
        option,
        "profiles/kubernetes",
        "--seconds-between-status-checks",
        "1",
    ]
    return subprocess.run(argv, cwd=project, env=env, capture_output=True, text=True, timeout=200)


def pod(job: dict[str, Any]) -> dict[str, Any]:
    """What a job runs."""
    spec: dict[str, Any] = job["spec"]["template"]["spec"]
    return spec


def test_the_profile_is_understood_without_a_cluster(project: Path) -> None:
    ended = snakemake(project, None, "-n")
    assert ended.returncode == 0, ended.stderr
    run = ended.stdout.split("\nrule run:")[1].partition("\n\n")[0]
    assert "mem_mb=24000" in run and "scale=0" in run


def test_a_pod_has_a_node_to_itself_the_volume_and_the_rules_command(project: Path, cluster: Cluster) -> None:
    claim = f"scaleproof:{project}"
    ended = snakemake(project, cluster, "small", "--config", "size=ci", "--kubernetes-shared-persistent-volumes", claim)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert [call.partition(" ")[0] for call in calls(project)] == ["run", "judge", "report"]
    for secret in cluster.secrets:
        check(secret, "io.k8s.api.core.v1.Secret")
    for job in cluster.jobs.values():
        check(job, "io.k8s.api.batch.v1.Job")
    (timing,) = [
        job for job in cluster.jobs.values() if pod(job)["containers"][0]["resources"]["requests"]["cpu"] == "8000m"
    ]
    spec = pod(timing)
    (container,) = spec["containers"]
    assert container["image"] == yaml.safe_load(CONFIG.read_text())["container-image"]
    assert (
        container["resources"]["limits"]
        == container["resources"]["requests"]
        == {"cpu": "8000m", "memory": "24000M", "ephemeral-storage": "10000M"}
    )
    assert {"name": "scaleproof", "mountPath": str(project)} in container["volumeMounts"]
    assert {"name": "scaleproof", "persistentVolumeClaim": {"claimName": "scaleproof"}} in spec["volumes"]
    assert set(cluster.jobs) <= set(cluster.deleted), "finished jobs are removed"
    assert len(cluster.jobs) == 1, "verdicts and pages are made where snakemake was typed"


def test_a_profile_that_another_one_cuts_down_is_refused(project: Path, cluster: Cluster) -> None:
    ended = snakemake(project, cluster, "small", "--config", "size=ci", "--cores", "2", option="--profile")
    assert (
        ended.returncode == 1
        and "profiles/default cuts pods of 8 cores down to this machine's 2" in ended.stdout + ended.stderr
    )
    assert not cluster.jobs and not cluster.secrets


def test_a_pod_that_fails_fails_its_rule(project: Path, cluster: Cluster) -> None:
    (project / "bin" / "scaleproof").write_text("#!/bin/sh\nexit 2\n")
    ended = snakemake(
        project,
        cluster,
        "small",
        "--config",
        "size=ci",
        "--kubernetes-shared-persistent-volumes",
        f"scaleproof:{project}",
    )
    assert ended.returncode == 1 and set(cluster.codes.values()) == {1}
    assert not list(project.glob("results/tables/*"))
