import hashlib
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

from snakemake.settings.types import DeploymentMethod

import scaleproof
from scaleproof.record.digest import code_digest, machine_id
from scaleproof.spec.suite import FILE, list_suites, load_suite
from scaleproof.spec.suite_form import SIZES
from scaleproof.spec.tuned import FILE as TUNED
from scaleproof.workloads.profile import replayed

# `.venv/bin/snakemake` without an activated environment finds the command beside it.
if not shutil.which("scaleproof"):
    shell.prefix(
        f"set -euo pipefail; export PATH={Path(sys.executable).parent}:$PATH; "
    )

SUITES = {folder.name: load_suite(folder) for folder in list_suites(Path("suites"))}
SIZE = config.get("size", "smoke")
if SIZE not in SIZES:
    raise WorkflowError(f"no size {SIZE!r}; known: {', '.join(SIZES)}")


wildcard_constraints:
    suite="|".join(SUITES),
    size="|".join(SIZES),
    experiment="[^./]+",
    campaign="[0-9]+",
    what="[a-z]+",


def suite_files(wildcards):
    """Files that define an experiment's cases: suite.yaml, tuned.yaml and the suite's own code."""
    folder = SUITES[wildcards.suite].folder
    files = [folder / FILE, *folder.glob(TUNED), *sorted(folder.rglob("*.py"))]
    return list(map(str, files))


def profiling(wildcards):
    """The command that measures missing profiles of this machine; empty when no case needs one."""
    cases = size_of(wildcards).cases
    if not any(
        replayed(case) and case.compute_options.profile is None for case in cases
    ):
        return ""
    arguments = f"{wildcards.suite} {wildcards.experiment} --size {wildcards.size}"
    return f"scaleproof profile {arguments}; "


def size_of(wildcards):
    """An experiment's size: its cases and the resources that they request from a cluster."""
    return (
        SUITES[wildcards.suite].experiment(wildcards.experiment).sizes[wildcards.size]
    )


def share_of_machine(wildcards):
    """All of it, so that nothing runs beside a measurement; half of it where no claim reads a clock, and for
    predictions."""
    experiment = SUITES[wildcards.suite].experiment(wildcards.experiment)
    return 100 if experiment.runs_alone(wildcards.size) else 50


def longest_first(wildcards):
    """Priority: long suites begin first, and of a suite the experiment with the most launches, so that no core idles
    beside the last of the experiments that run two at a time."""
    size, minutes = size_of(wildcards), SUITES[wildcards.suite].reference_minutes
    return 1000 * (minutes or 0) + min(len(size.cases) * size.launches, 999)


# Jobs run one after the other: they would share switches, and they share the lock of results/.
ONE_BY_ONE = "--dependency=singleton"


def requested(name):
    """A resource of an experiment's job, by name; only executors for clusters read it. A rule with resource `mpi`
    starts its tasks itself and needs at least two."""

    def of(wildcards):
        request = size_of(wildcards).request
        return {
            "nodes": request.nodes,
            "tasks": max(request.tasks, 2),
            "cpus_per_task": request.cpus_per_task,
            "gres": f"gpu:{request.gpus}" if request.gpus else None,
            "constraint": request.constraint,
            "runtime": request.time_limit_min,
            "slurm_extra": f"{'--exclusive ' * request.exclusive}{ONE_BY_ONE}",
        }[name]

    return of


def campaign_of(wildcards):
    """The campaign of a job, from 0: the last one unless the job's output names another."""
    return int(wildcards.get("campaign", size_of(wildcards).campaigns - 1))


def campaign_option(wildcards):
    """The option for the campaign; none where there is one campaign."""
    several = size_of(wildcards).campaigns > 1
    return f"--campaign {campaign_of(wildcards)} " if several else ""


def earlier_campaign(wildcards):
    """What the campaign before this job's one leaves behind; empty for the first."""
    before = campaign_of(wildcards) - 1
    name = f"{wildcards.suite}.{wildcards.experiment}.{wildcards.size}"
    return [f"results/campaigns/{name}.{before}"] if before >= 0 else []


def over(wildcards, resources):
    """The option for the interface that the profile names."""
    return f"--interface {resources.interface} " if resources.get("interface") else ""


def fits_first(wildcards):
    """What has to be fitted to this machine before an experiment: costs, when it simulates with them, with the time of
    a core that messages take, and with what servers take for a tensor, where these count; jitter, when its ranks draw
    from it."""
    cases, size = size_of(wildcards).cases, "ci" if SIZE == "ci" else "smoke"
    simulated = [case for case in cases if case.value("fabric.costs") == "fitted"]
    asked = {
        "costs": bool(simulated),
        "bandwidth": any(
            case.value("fabric.cores") is not None
            or (case.program == "train" and case.plugin("strategy").has_servers)
            for case in simulated
        ),
        "tensors": any(
            case.program == "train" and case.strategy == "parameter_server"
            for case in simulated
        ),
        "jitter": any(
            "fitted" in (case.value("compute.jitter"), case.value("fabric.stragglers"))
            for case in cases
        ),
    }
    return [fitted_to(size, what) for what, needed in asked.items() if needed]


def claim_files(wildcards):
    """The published values of a suite and the rules that judge them."""
    paths = [
        SUITES[wildcards.suite].folder / name
        for name in ("published.yaml", "claims.yaml")
    ]
    return [str(path) for path in paths if path.exists()]


def claim_digest(wildcards):
    """Digest of `claim_files`: with other claims other noise floors may be missing."""
    total = hashlib.sha256()
    for path in claim_files(wildcards):
        total.update(Path(path).read_bytes())
    return total.hexdigest()[:16]


def floors_first(wildcards):
    """The noise floors of this machine that a suite's verdicts need; size ci has no verdicts."""
    name = f"floors.{wildcards.suite}.{wildcards.size}"
    return [] if wildcards.size == "ci" else [f"results/machines/{machine_id()}/{name}"]


def tables(wildcards):
    """One table for each experiment of the suite with this size."""
    experiments = SUITES[wildcards.suite].experiments
    names = [
        name
        for name, experiment in experiments.items()
        if wildcards.size in experiment.sizes
    ]
    return expand(
        "results/tables/{suite}.{name}.{size}.parquet",
        suite=wildcards.suite,
        name=names,
        size=wildcards.size,
    )


def validated(wildcards):
    """Digest of the verdicts of suite `validation`, which label the evidence of all other suites: these are judged
    again when it changes. It is no input, so that a suite that was not requested is not run for it. Size ci has no
    such verdicts."""
    total, paths = hashlib.sha256(), Path("results/claims").glob("validation.*.json")
    for path in sorted(paths) if wildcards.suite != "validation" else []:
        if path.name != "validation.ci.json":
            total.update(path.read_bytes())
    return total.hexdigest()[:16]


def verdicts(suites, size):
    """The verdicts of some suites at one size."""
    return expand("results/claims/{suite}.{size}.json", suite=suites, size=size)


# What is fitted to this machine, each from the experiment of suite micro with this name.
FITS = ("costs", "jitter", "bandwidth", "tensors")


def fitted_to(size, what="{what}"):
    """The file that marks what was fitted to a size of suite micro, or to a larger one. Size smoke has every transport
    of simulated cases, and takes minutes."""
    return f"results/machines/{machine_id()}/fitted.{what}.{size}"


def fitted(suites, size):
    """All that is fitted to this machine, when the suite that measures it is requested."""
    return [fitted_to(size, what) for what in FITS] if "micro" in suites else []


def digest_of(*rooms):
    """Digest of some subpackages of the harness: Snakemake does not notice changes in a package that its rules call."""
    package, total = Path(scaleproof.__file__).parent, hashlib.sha256()
    for path in sorted(
        path
        for room in rooms
        for path in (package / room).rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    ):
        total.update(f"{path.relative_to(package)}\0".encode() + path.read_bytes())
    return total.hexdigest()[:16]


# name -> (suites, size): the verdicts that `snakemake NAME` updates before it makes the pages
TARGETS = {
    "smoke": (list(SUITES), "smoke"),
    **{name: ([name], SIZE) for name in SUITES},
}


def in_this_call(size):
    """Targets of one size that this call of Snakemake names, by name. Snakemake knows them once all rules are read."""
    named = set(map(str, workflow.dag_settings.targets))
    return sorted(name for name in named & set(TARGETS) if TARGETS[name][1] == size)


def makes_pages(target, wildcards):
    """Whether a target is the one that makes the pages of its size."""
    return target in in_this_call(TARGETS[target][1])[:1]


def awaited(target, wildcards):
    """The verdicts that a target waits for."""
    suites, size = TARGETS[target]
    if makes_pages(target, wildcards):
        suites = sorted(
            {name for each in in_this_call(size) for name in TARGETS[each][0]}
        )
    return verdicts(suites, size)


def suites_with_extras_to_run():
    """Suites with packages of their own of which this call runs an experiment, sorted. Jobs in environments that
    Snakemake makes would not see what is installed beside it."""
    if DeploymentMethod.CONDA in workflow.deployment_settings.deployment_method:
        return []
    rules = ("run", "run_before")
    jobs = [job for job in workflow.dag.needrun_jobs() if job.rule.name in rules]
    suites = sorted({job.wildcards.suite for job in jobs})
    return [name for name in suites if (SUITES[name].folder / "extras.toml").exists()]
