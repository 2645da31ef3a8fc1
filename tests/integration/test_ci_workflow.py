"""The workflow file for users' continuous integration: its form, and each of its commands as a runner's shell would run
it, on a small suite."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator

from scaleproof.record.digest import machine_id
from scaleproof.record.machine import Floor, MachineProfile, write_profile
from tests.noise_floors import COLLECTIVE

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docs" / "ci" / "scaleproof.yml"
SUITE = """\
suite: tiny
title: A suite
experiments:
  reduce:
    summary: One
    base: {program: collective, transport: tcp, collective: ring, ranks: 2, sizes: [64 KiB], iterations: 60}
    arms: {tcp: {}}
    sizes:
      ci: {launches: 6, matrix: [{arms: [tcp]}]}
"""
SLOW = ("    end = now()\n    if share:", "    end = now()\n    share += 30.0\n    if share:")
"""What a bad change does to harness/scaleproof/programs/handicap.py: every sample takes 31 times as long."""
FLOOR = 5.0
"""Stated, not measured: the slowdown is far above it, and whatever a busy machine does to equal launches far below."""
OURS = {
    "SUITE": "tiny",
    "EXPERIMENT": "reduce",
    "SIZE": "ci",
    "LAUNCHES": "6",
    "METRICS": "--metric collective_latency",
    "PROFILE": "profiles/default",
}


def workflow() -> dict[str, Any]:
    """YAML 1.1 reads the key `on` as true."""
    parsed = yaml.safe_load(FILE.read_text())
    return {"on" if key is True else key: value for key, value in parsed.items()}


def test_it_has_the_published_form_of_a_workflow() -> None:
    form = json.loads((ROOT / "tests" / "schemas" / "github-workflow.json").read_text())
    errors = [
        f"{list(error.absolute_path)}: {error.message[:200]}" for error in Draft7Validator(form).iter_errors(workflow())
    ]
    assert errors == []
    broken = workflow()
    broken["jobs"]["runner"]["steps"][0]["use"] = "x"
    assert list(Draft7Validator(form).iter_errors(broken)), "the form sees a misspelt key"


pytestmark = pytest.mark.timeout(900)
"""Two environments, then two dozen launches with a preflight each."""


@dataclass
class Runner:
    """Runs the `run:` steps of a job by name. `event`: values of the expressions in them; one that is missing is an
    error."""

    job: str
    folder: Path
    event: dict[str, str]
    path: str = os.environ["PATH"]
    ran: list[str] = field(default_factory=list)

    @property
    def summary(self) -> str:
        return (self.folder / "summary.md").read_text()

    def step(self, name: str) -> subprocess.CompletedProcess[str]:
        job = workflow()["jobs"][self.job]
        (named,) = [step for step in job["steps"] if step.get("name") == name]
        script = self.folder / "step.sh"
        script.write_text(re.sub(r"\$\{\{\s*(.+?)\s*\}\}", lambda match: self.event[match[1]], named["run"]))
        (self.folder / "output").touch()
        variables = {
            "GITHUB_STEP_SUMMARY": str(self.folder / "summary.md"),
            "GITHUB_OUTPUT": str(self.folder / "output"),
            "PATH": self.path,
        }
        env = {
            **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},  # code is each clone's own
            **{name: str(value) for name, value in {**workflow()["env"], **job.get("env", {})}.items()},
            **OURS,
            **variables,
        }
        self.ran.append(name)
        where = self.folder / named.get("working-directory", ".")
        return subprocess.run(
            ["bash", "-e", str(script)], cwd=where, env=env, capture_output=True, text=True, timeout=600
        )

    def good(self, *names: str) -> None:
        for name in names:
            ended = self.step(name)
            assert ended.returncode == 0, f"{name}: {ended.stdout[-2000:]}{ended.stderr[-2000:]}"


@pytest.fixture(scope="module")
def clones(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """`base` and `change`: this tree as it is, with the small suite, each with an environment of its own as the
    workflow's step makes it."""
    folder = tmp_path_factory.mktemp("ci")
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\n")
    for side in ("base", "change"):
        for name in filter(None, listed):
            if (ROOT / name).is_file() and not name.startswith(("results/", "tests/")):
                (folder / side / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, folder / side / name)
        suite = folder / side / "suites" / "tiny" / "suite.yaml"
        suite.parent.mkdir()
        suite.write_text(SUITE)
    Runner("runner", folder, {}).good("Environment")
    yield folder
    shutil.rmtree(folder)


def stated_floor(results: Path) -> None:
    """As if this machine had been calibrated."""
    floor = Floor(
        metric="collective_latency",
        kind=COLLECTIVE,
        nbytes=1 << 16,
        share=FLOOR,
        spread=0.1,
        launches_per_arm=6,
        comparisons=1,
        taken="stated",
    )
    write_profile(results, MachineProfile(machine=machine_id(), code="", measured_at="", floors=(floor,)))


def test_on_one_runner_a_slower_change_fails(clones: Path) -> None:
    stated_floor(clones / "change" / "results")
    code = clones / "change" / "harness" / "scaleproof" / "programs" / "handicap.py"
    assert SLOW[0] in code.read_text()
    code.write_text(code.read_text().replace(*SLOW))
    runner = Runner("runner", clones, {})
    runner.good("Noise floor of this runner", "Both, block by block")
    assert runner.step("Compare").returncode == 1
    assert "### Scaleproof: regression" in runner.summary and "**regression**" in runner.summary
    comparison = json.loads((clones / "comparison.json").read_text())
    (pair,) = comparison["pairs"]
    assert comparison["outcome"] == "regression" and pair["paired"] and len(pair["runs_a"]) == len(pair["runs_b"]) == 6
    assert (clones / "comparison.html").exists()
    assert set(runner.ran) | {"Environment"} == {
        step["name"] for step in workflow()["jobs"]["runner"]["steps"] if "run" in step
    }


def test_on_a_cluster_the_first_results_become_the_reference_and_equal_code_passes(clones: Path) -> None:
    """With the local profile, and a stand-in for Slurm that says it is there: profiles/slurm has tests on a real
    one."""
    folder = clones / "base"
    shutil.rmtree(folder / "results", ignore_errors=True)
    (folder / "bin").mkdir()
    (folder / "bin" / "sinfo").write_text("#!/bin/sh\n")
    (folder / "bin" / "sinfo").chmod(0o755)
    event = {"github.event_name": "push", "inputs.accept": "", "steps.slurm.outputs.ours": ""}
    cluster = Runner("cluster", folder, event, f"{folder / 'bin'}:{os.environ['PATH']}")
    stated_floor(folder / "reference")
    cluster.good(
        "Environment",
        "A small Slurm, where there is none",
        "Noise floor of the nodes",
        "Measure",
        "Compare",
        "A new reference",
    )
    assert "no reference yet" in cluster.summary and "renewed=true" in (folder / "output").read_text()
    shutil.rmtree(folder / "results")  # the next run begins in a fresh checkout
    cluster.good("Noise floor of the nodes", "Measure", "Compare")
    assert "### Scaleproof: no regression" in cluster.summary
    comparison = json.loads((folder / "comparison.json").read_text())
    assert not set(comparison["pairs"][0]["runs_a"]) & set(comparison["pairs"][0]["runs_b"]), "measured anew"
    (folder / "output").unlink()
    cluster.good("A new reference")
    assert (folder / "output").read_text() == "", "a reference stays until it is accepted anew"
    names = {step["name"] for step in workflow()["jobs"]["cluster"]["steps"] if "run" in step}
    assert names - set(cluster.ran) == {"The small Slurm ends"}, "which tests of tools/small_cluster hold"
