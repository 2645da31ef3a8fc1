import hashlib
import shutil
import sys
from pathlib import Path

import scaleproof
from scaleproof.record.digest import code_digest, machine_id
from scaleproof.spec.suite import FILE, SIZES, list_suites, load_suite
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


def suite_files(wildcards):
    """What decides an experiment's cases and what they do: suite.yaml and the suite's own code."""
    folder = SUITES[wildcards.suite].folder
    return [str(folder / FILE), *sorted(map(str, folder.rglob("*.py")))]


def profiling(wildcards):
    """Measures what an experiment's cases replay or simulate of this machine, where it is missing; nothing where they do not."""
    cases = size_of(wildcards).cases
    if not any(
        replayed(case) and case.compute_options.profile is None for case in cases
    ):
        return ""
    words = f"{wildcards.suite} {wildcards.experiment} --size {wildcards.size}"
    return f"scaleproof profile {words}; "


def size_of(wildcards):
    """An experiment's size: its cases and what they ask a cluster for."""
    return (
        SUITES[wildcards.suite].experiment(wildcards.experiment).sizes[wildcards.size]
    )


# One job after the other: they would share switches, and they share the lock of results/.
ONE_BY_ONE = "--dependency=singleton"


def asked(what):
    """A resource of an experiment's job, by name; read by executors for clusters only. A rule that is `mpi` starts its tasks itself and has two at least."""

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
        }[what]

    return of


def over(wildcards, resources):
    """The interface that the profile names."""
    return f"--interface {resources.interface} " if resources.get("interface") else ""


def costs_first(wildcards):
    """What simulation reads of this machine, where an experiment's cases ask for it."""
    cases = size_of(wildcards).cases
    return (
        [fitted_to("ci" if SIZE == "ci" else "smoke")]
        if any(case.value("fabric.costs") == "fitted" for case in cases)
        else []
    )


def claim_files(wildcards):
    """What the paper says and how it is judged."""
    found = [
        SUITES[wildcards.suite].folder / name
        for name in ("published.yaml", "claims.yaml")
    ]
    return [str(path) for path in found if path.exists()]


def tables(wildcards):
    """One table per experiment of the suite that has this size."""
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
    """Digest of suite validation's verdicts, which label the evidence of all others: those are judged anew when they change. No input: a suite that was
    not asked for is not run for them. Size ci has none."""
    total, found = hashlib.sha256(), Path("results/claims").glob("validation.*.json")
    for path in sorted(found) if wildcards.suite != "validation" else []:
        if path.name != "validation.ci.json":
            total.update(path.read_bytes())
    return total.hexdigest()[:16]


def verdicts(suites, size):
    """The verdicts of some suites at one size."""
    return expand("results/claims/{suite}.{size}.json", suite=suites, size=size)


def fitted_to(size):
    """Says that this machine's costs are fitted to a size of suite micro, or to a larger one: smoke has every transport that a simulated case asks for, and takes minutes."""
    return f"results/machines/{machine_id()}/fitted.{size}"


def fitted(suites, size):
    """The costs of this machine's transports where the suite that measures them is asked for."""
    return [fitted_to(size)] if "micro" in suites else []


def digest_of(*rooms):
    """Digest of some rooms of the harness: Snakemake does not see a change inside a package that its rules call."""
    package, total = Path(scaleproof.__file__).parent, hashlib.sha256()
    for path in sorted(
        path
        for room in rooms
        for path in (package / room).rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    ):
        total.update(f"{path.relative_to(package)}\0".encode() + path.read_bytes())
    return total.hexdigest()[:16]


# name -> (suites, size): what `snakemake NAME` brings up to date before it makes the pages
TARGETS = {
    "smoke": (list(SUITES), "smoke"),
    **{name: ([name], SIZE) for name in SUITES},
}
