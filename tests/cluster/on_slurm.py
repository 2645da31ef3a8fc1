"""A project of its own that a test submits to a small cluster, and what became of it."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from scaleproof.core.record_schema import Record
from scaleproof.fabric.small_clusters import SmallCluster
from scaleproof.record.store import Store
from tools.small_cluster.cluster import environment, slurm_output

ROOT = Path(__file__).parents[2]
SUITE = Path(__file__).parent / "disturbed"
WATCHING = Path(__file__).with_name("watching_snakemake.py")
WITHIN_S = 540.0


class Project:
    """A copy of the workflow with some suites, and its results."""

    def __init__(self, folder: Path, cluster: SmallCluster, suites: list[Path]) -> None:
        self.folder, self.cluster = folder, cluster
        folder.mkdir(parents=True)
        for name in ("Snakefile", "environment.yml"):
            shutil.copy(ROOT / name, folder)
        for name in ("workflows", "profiles"):
            shutil.copytree(ROOT / name, folder / name)
        for suite in suites:
            shutil.copytree(suite, folder / "suites" / suite.name, ignore=shutil.ignore_patterns("__pycache__"))
        self.process: subprocess.Popen[bytes] | None = None

    def edit(self, changes: dict[str, str]) -> None:
        """What a reader with a cluster does to the one file."""
        file = self.folder / "profiles" / "slurm" / "config.yaml"
        for old, new in changes.items():
            assert old in file.read_text(), f"{file.name} has no {old!r}"
            file.write_text(file.read_text().replace(old, new, 1))

    def submit(self, target: str) -> None:
        """`snakemake TARGET --profile profiles/slurm` at size ci, which looks after its jobs every second."""
        arguments = ["--profile", "profiles/slurm", "--config", "size=ci"]
        with (self.folder / "snakemake.log").open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, str(WATCHING), target, *arguments],
                cwd=self.folder,
                env=self.environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def environment(self) -> dict[str, str]:
        """Of a login node."""
        own = {"PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]), "OMP_NUM_THREADS": "1"}
        return {**environment(self.cluster), **own}

    def wait(self, within_s: float = WITHIN_S) -> int:
        """Its exit code."""
        assert self.process is not None
        return self.process.wait(within_s)

    def end(self) -> None:
        """Whatever is left of it."""
        if self.process is not None and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    @property
    def said(self) -> str:
        """All that Snakemake said, and the end of what jobs said."""
        logs = [
            f"\n{path}:\n" + path.read_text(errors="replace")[-3000:]
            for path in sorted(self.folder.glob(".snakemake/slurm_logs/**/*.log"))
        ]
        return (self.folder / "snakemake.log").read_text(errors="replace") + "".join(logs)

    @property
    def jobs(self) -> list[str]:
        """Numbers of the jobs that were submitted, in their order."""
        return re.findall(
            r"has been submitted with SLURM jobid (\d+)", (self.folder / "snakemake.log").read_text(errors="replace")
        )

    def state(self, job: str) -> str:
        """As Slurm has it."""
        return slurm_output(self.cluster, "squeue", "-h", "-t", "all", "-j", job, "-o", "%T").strip()

    def nodes(self, job: str) -> list[str]:
        """Of a job, the one where its script runs first."""
        return slurm_output(
            self.cluster,
            "scontrol",
            "show",
            "hostnames",
            slurm_output(self.cluster, "squeue", "-h", "-j", job, "-o", "%N").strip(),
        ).split()

    def records(self) -> list[Record]:
        """All, oldest first."""
        return sorted(Store(self.folder / "results").records(), key=lambda record: record.started_at)

    def finished(self) -> dict[str, int]:
        """Launch to its plan index, of those that ended well."""
        return {record.launch: record.plan_index for record in self.records() if record.status == "ok"}

    def until(self, problem: str, reached: Callable[[], object], within_s: float = WITHIN_S) -> None:
        """Wait for it, while Snakemake runs."""
        until = time.monotonic() + within_s
        while not reached():
            assert self.process is not None
            assert self.process.poll() is None, f"Snakemake ended before: {problem}\n{self.said}"
            assert time.monotonic() < until, f"not in time: {problem}\n{self.said}"
            time.sleep(0.2)


def each_once(project: Project, launches: int) -> bool:
    """Every repetition of the plan ended well once, and none twice."""
    return Counter(project.finished().values()) == Counter(range(launches))
