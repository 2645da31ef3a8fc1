"""Kubernetes manifests follow from the experiment and match the schemas that Kubernetes and the operators publish."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from scaleproof.cli import main
from scaleproof.launch.nodes.host_list import parse
from tests.unit.launch.kubernetes_forms import check

SUITE = """\
suite: own
title: A suite
experiments:
  over_nodes:
    summary: One
    allocation: {nodes: 2, time_limit_min: 20, constraint: big}
    base: {program: train, framework: torch, strategy: sync, workload: {name: cd_dnn, width: 0.03}, minibatch: 24,
      steps: 4, transport: gloo}
    arms: {two: {ranks: 2}, six: {ranks: 6, threads_per_rank: 3}}
    sizes:
      ci: {launches: 2, deadline_s: 100, matrix: [{arms: [two, six]}]}
  alone:
    summary: Two
    base: {program: transfer, sizes: [1 KiB], fabric: {name: netns, link_mbit: 100}, nodes: 2, interface: eth0,
      transport: tcp}
    arms: {tcp: {}}
    sizes:
      ci: {launches: 1, matrix: [{arms: [tcp]}]}
"""
FORMS = {"mpijob": "mpijob-v2beta1.json", "pytorchjob": "pytorchjob-v1.json"}
IMAGE = "registry.example/scaleproof:1"


@pytest.fixture
def suite(tmp_path: Path) -> str:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "suite.yaml").write_text(SUITE)
    return str(tmp_path / "own")


def run(suite: str, *arguments: str, experiment: str = "over_nodes") -> int:
    return main(["kubernetes", suite, experiment, "--size", "ci", "--image", IMAGE, *arguments])


def rendered(capsys: pytest.CaptureFixture[str], suite: str, *arguments: str) -> dict[str, Any]:
    assert run(suite, *arguments) == 0
    manifest: dict[str, Any] = yaml.safe_load(capsys.readouterr().out)
    return manifest


def replicas(manifest: dict[str, Any]) -> dict[str, Any]:
    """Replica specs by their role."""
    spec = manifest["spec"]
    return dict(spec["mpiReplicaSpecs"] if manifest["kind"] == "MPIJob" else spec["pytorchReplicaSpecs"])


@pytest.mark.parametrize("options", [(), ("--gpus", "2"), ("--nodes", "1"), ("--nodes", "4")])
@pytest.mark.parametrize("kind", ["mpijob", "pytorchjob"])
def test_manifests_match_the_published_schemas_of_their_kind_and_of_pods(
    suite: str, capsys: pytest.CaptureFixture[str], kind: str, options: tuple[str, ...]
) -> None:
    manifest = rendered(capsys, suite, "--kind", kind, *options)
    check(manifest, "", FORMS[kind])
    for replica in replicas(manifest).values():
        check(replica["template"], "io.k8s.api.core.v1.PodTemplateSpec")
    assert f"{kind}-{manifest['apiVersion'].removeprefix('kubeflow.org/')}.json" == FORMS[kind], (
        "the form is of the version that the object names"
    )


def test_a_misspelt_field_fails_the_schema(suite: str, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = rendered(capsys, suite, "--kind", "mpijob")
    for part, name in (
        (manifest["spec"], "slotsPerWorkers"),
        (replicas(manifest)["Worker"], "replica"),
        (replicas(manifest)["Worker"]["template"]["spec"], "volume"),
    ):
        part[name] = 1
        with pytest.raises(AssertionError, match=name):
            check(manifest, "", FORMS["mpijob"])
        del part[name]


def test_pods_cores_kind_and_deadline_follow_from_the_experiment(
    suite: str, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest = rendered(capsys, suite, "--kind", "mpijob", "--nodes", "4", "--gpus", "1")
    worker = replicas(manifest)["Worker"]
    assert (manifest["spec"]["slotsPerWorker"], worker["replicas"]) == (2, 4), "6 ranks on 4 nodes"
    resources = worker["template"]["spec"]["containers"][0]["resources"]
    assert (
        resources["limits"] == resources["requests"]
        and resources["limits"]["cpu"] == 6
        and resources["limits"]["nvidia.com/gpu"] == 1
    )
    assert manifest["spec"]["runPolicy"]["activeDeadlineSeconds"] == 20 * 60
    assert worker["template"]["spec"]["nodeSelector"] == {"scaleproof/kind": "big"}
    spread = worker["template"]["spec"]["affinity"]["podAntiAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ][0]
    assert spread["labelSelector"]["matchLabels"].items() <= worker["template"]["metadata"]["labels"].items()


def test_the_first_pod_runs_the_experiment_on_all_of_them(suite: str, capsys: pytest.CaptureFixture[str]) -> None:
    master = replicas(rendered(capsys, suite, "--kind", "pytorchjob", "--nodes", "3", "--name", "job"))["Master"][
        "template"
    ]["spec"]["containers"][0]
    argv = shlex.split(master["args"][0].splitlines()[-1].removeprefix("exec "))
    hosts = parse(argv[argv.index("--hosts") + 1])
    assert [(host.name, host.slots) for host in hosts] == [
        ("job-master-0", 2),
        ("job-worker-0", 2),
        ("job-worker-1", 2),
    ]
    launcher = replicas(rendered(capsys, suite, "--kind", "mpijob"))["Launcher"]["template"]["spec"]["containers"][0]
    assert (
        launcher["args"][0]
        .rstrip()
        .endswith(
            "scaleproof run own over_nodes --size ci --results /results --launcher mpirun --hosts /etc/mpi/hostfile"
        )
    )


def test_the_first_pod_waits_for_the_others_shells(
    suite: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Its command with replaced tools: a host that answers at the third call, and one that never does."""
    (tmp_path / "bin").mkdir()
    ssh = (
        "for word; do host=$last; last=$word; done\n"
        'echo "$host" >> calls; test "$host" = job-worker-0 && test "$(grep -c "$host" calls)" -ge 3'
    )
    for name, text in {"ssh": ssh, "scaleproof": 'echo "$@" > ran; env >> ran', "sleep": "exit 0"}.items():
        (tmp_path / "bin" / name).write_text(f"#!/bin/bash\n{text}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    env = {
        "PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin",
        "PET_NNODES": "9",
        "OMPI_MCA_orte_default_hostfile": "x",
        "RANK": "0",
        "KEPT": "1",
    }
    for nodes, code in (("2", 0), ("3", 2)):
        container = replicas(rendered(capsys, suite, "--kind", "pytorchjob", "--nodes", nodes, "--name", "job"))[
            "Master"
        ]["template"]["spec"]["containers"][0]
        ended = subprocess.run(
            [*container["command"], *container["args"]],
            cwd=tmp_path,
            env=env,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert (ended.returncode, (tmp_path / "ran").exists()) == (code, not code), ended.stderr
        if code == 0:
            ran = (tmp_path / "ran").read_text().splitlines()
            assert (tmp_path / "calls").read_text().split() == ["job-worker-0"] * 3 and "--launcher torchrun" in ran[0]
            assert {"PET_NNODES", "OMPI_MCA_orte_default_hostfile", "RANK", "KEPT"} & {
                line.partition("=")[0] for line in ran
            } == {"KEPT"}
            (tmp_path / "ran").unlink()
    assert "no remote shell on job-worker-1 after 10 minutes" in ended.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--kind", "mpi"), "unknown kind 'mpi'; did you mean 'mpijob'?"),
        (
            ("--kind", "mpijob", "--namespace", "My_Team"),
            "--namespace 'My_Team': Kubernetes accepts lower-case letters",
        ),
        (("--kind", "mpijob", "--name", "x" * 41), "has 41 characters"),
        (("--kind", "mpijob", "--nodes", "0"), "--nodes 0: at least 1"),
        (("--kind", "mpijob", "--image", "a image"), "'a image' is no name of an image"),
    ],
)
def test_what_kubernetes_would_refuse_is_a_one_line_error(
    suite: str, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    assert run(suite, *arguments) == 2
    printed = capsys.readouterr()
    assert message in printed.err and printed.err.count("\n") == 1 and printed.out == ""


def test_an_experiment_on_an_emulated_network_needs_no_cluster(suite: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(suite, "--kind", "mpijob", experiment="alone") == 2
    assert "has no case on the host's network (fabric netns)" in capsys.readouterr().err
