"""The jobs of a case: the Venus slice, a generated cluster, or a trace of the user's."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
from suite_programs.generator import Shape, generate
from suite_programs.helios import read_helios
from suite_programs.jobs import NO_NAME, Jobs
from suite_programs.philly import read_philly
from suite_programs.traces import SLICE, digest, read_slice

from scaleproof.spec.case import AnyCase, OwnCase
from scaleproof.spec.program_options import choice

FOLDER = "HELIOS2021_TRACES"
"""The environment variable that names the folder of traces."""
CLUSTERS = ("venus", "earth", "saturn", "uranus")
DEFAULT = Path(__file__).parents[1] / "traces"
WINDOW = ("2020-09-01", "2020-09-26")
"""Days that the paper evaluates on Helios."""
HELIOS_AT = "https://github.com/S-Lab-System-Group/HeliosData (data.zip)"
PHILLY_AT = "https://github.com/msr-fiddle/philly-traces (trace-data.tar.gz, cluster_job_log)"


def trace_files(trace: str, cluster: str) -> tuple[Path, Path | None]:
    """The log of a cluster and the capacities of its VCs, if there is such a file. `trace`: helios, philly."""
    folder = Path(os.environ.get(FOLDER) or DEFAULT)
    if trace == "philly":
        log, capacity = folder / "cluster_job_log", folder / "philly_nodes.csv"
    else:
        log = folder / cluster.capitalize() / "cluster_log.csv"
        capacity = log.with_name("cluster_gpu_number.csv")
    return log, capacity if capacity.is_file() else None


def missing(case: AnyCase) -> tuple[str, str] | None:
    """Which file the case needs and lacks, and where to get it."""
    if not isinstance(case, OwnCase) or case.options.get("trace") not in ("helios", "philly"):
        return None
    trace, cluster = str(case.options["trace"]), str(case.options["cluster"])
    names = CLUSTERS if cluster == "helios_all" else (cluster,)
    log = next((log for log, _ in (trace_files(trace, name) for name in names) if not log.is_file()), None)
    if log is None:
        return None
    at = PHILLY_AT if trace == "philly" else HELIOS_AT
    name = log.name if trace == "philly" else f"{log.parent.name}/{log.name}"
    return (
        f"the trace {name} is not here",
        f"get it from {at} and set {FOLDER} to its folder (suites/helios2021/README.md)",
    )


def generated_jobs(case: OwnCase, cluster: str, jobs: int, seed: int) -> Jobs:
    """Jobs of a generated cluster, in the case's shape."""
    of = case.options
    equal_s, equal_gpus = float(of.get("equal_s", 0)), int(of.get("equal_gpus", 0))
    shape = Shape(cluster, jobs, int(of["nodes"]), int(of["vcs"]), float(of["load"]), equal_s, equal_gpus)
    return _generated(shape, seed)


TRACES = ("slice", "generated", "helios", "philly")


def jobs_of(case: OwnCase, seed: int) -> Jobs:
    """The jobs of a case; those of one VC, where the case names one."""
    of = case.options
    trace, cluster = choice(of, "trace", TRACES), str(of["cluster"])
    if trace == "generated":
        return _named(generated_jobs(case, cluster, int(of["jobs"]), seed), str(of.get("names", "known")))
    jobs = _slice() if trace == "slice" else _file(trace, cluster)
    vc = str(of.get("vc", "all"))
    return jobs if vc == "all" else jobs.of_vc(vc)


def _named(jobs: Jobs, names: str) -> Jobs:
    """With their names, or without them, as in the traces of Helios."""
    choice({"names": names}, "names", ("known", "withheld"))
    return jobs if names == "known" else replace(jobs, name=np.full(jobs.count, NO_NAME, np.int32))


@lru_cache(maxsize=2)
def _generated(shape: Shape, seed: int) -> Jobs:
    return generate(shape, seed)


@lru_cache(maxsize=1)
def _slice() -> Jobs:
    return read_slice()


@lru_cache(maxsize=1)
def _file(trace: str, cluster: str) -> Jobs:
    log, capacity = trace_files(trace, cluster)
    return read_philly(log, capacity) if trace == "philly" else read_helios(log, capacity, *WINDOW, cluster)


@lru_cache(maxsize=8)
def source_text(trace: str, cluster: str) -> str:
    """Where jobs are from: file and digest, or the generator."""
    if trace == "generated":
        return "generated from published marginals"
    path = SLICE if trace == "slice" else trace_files(trace, cluster)[0]
    return f"{path.name} sha256 {digest(path)}"
