"""Renders a run over several nodes as one object for Kubernetes, an MPIJob or a PyTorchJob, from the templates in this
folder."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path

import jinja2

from scaleproof.spec.case import AnyCase
from scaleproof.spec.errors import SpecError
from scaleproof.spec.estimate import estimate
from scaleproof.spec.request import RequestForm
from scaleproof.spec.suite import Suite

KINDS = {"mpijob": "mpirun", "pytorchjob": "torchrun"}
"""Kind of object to the launcher of its ranks."""
LONGEST_NAME = 40
"""Characters: operators append to the name, and a pod's name has at most 63."""
_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?$")
_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@-]*$")
_VALUE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$")
_HOST = "host"
GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class ManifestOptions:
    """Options of the command; the rest follows from the experiment."""

    kind: str
    image: str
    namespace: str = "default"
    name: str = ""
    nodes: int | None = None
    """Number of pods; None: as the experiment requests."""
    gpus: int | None = None
    """GPUs of each pod; None: as the experiment requests."""
    claim: str = "scaleproof"
    """Volume claim that keeps the records."""
    secret: str = "scaleproof-ssh"
    """Keys with which the pods of a PyTorchJob reach each other; an MPIJob's operator makes its own."""


def render(suite: Suite, experiment: str, size: str, options: ManifestOptions) -> str:
    """The object as YAML. SpecError for names and numbers that Kubernetes would refuse, and for an experiment that does
    not run over nodes."""
    chosen = suite.experiment(experiment).size(size)
    cases = [case for case in chosen.cases if case.plugin("fabric").evidence == "measured"]
    if not cases:
        fabrics = ", ".join(sorted({case.fabric for case in chosen.cases}))
        raise SpecError(
            f"experiment {experiment!r} at size {size!r} has no case on the host's network (fabric {fabrics}); "
            "it needs no nodes of a cluster"
        )
    name = options.name or "-".join(["scaleproof", suite.name, experiment]).lower().replace("_", "-")
    _check(options, name, chosen.allocation.constraint)
    request = replace(
        chosen, allocation=RequestForm(nodes=options.nodes, gpus=options.gpus).over(chosen.allocation)
    ).request
    run = ["scaleproof", "run", suite.name, experiment, "--size", size, "--results", "/results"]
    run += ["--launcher", KINDS[options.kind], "--hosts"]
    return _template(options.kind).render(
        name=name,
        options=options,
        title=f"{suite.name} {experiment} at size {size}",
        run=shlex.join(run),
        request=request,
        hosts=[f"{name}-master-0", *(f"{name}-worker-{number}" for number in range(request.nodes - 1))],
        cores=request.tasks_per_node * request.cpus_per_task,
        memory_gib=_memory_gib(cases),
    )


def _template(kind: str) -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(f"{kind}.yaml.j2")


def _memory_gib(cases: Sequence[AnyCase]) -> int:
    """Memory of all ranks of the largest case in one pod, and as much again for /dev/shm."""
    return 2 * ceil(max(estimate(case).nbytes for case in cases) / GIB)


def _check(options: ManifestOptions, name: str, kind: str | None) -> None:
    for option, value in (
        ("name", name),
        ("namespace", options.namespace),
        ("claim", options.claim),
        ("secret", options.secret),
    ):
        if not _LABEL.match(value):
            raise SpecError(
                f"--{option} {value!r}: Kubernetes accepts lower-case letters, digits and '-' here; "
                "the first and the last are letters or digits"
            )
    if len(name) > LONGEST_NAME:
        raise SpecError(
            f"--name {name!r} has {len(name)} characters; operators append to it, so that it may have {LONGEST_NAME}"
        )
    if not _IMAGE.match(options.image):
        raise SpecError(
            f"--image {options.image!r} is no name of an image; write it like registry.example/scaleproof:1"
        )
    if kind and not _VALUE.match(kind):
        raise SpecError(
            f"allocation.constraint {kind!r}: on Kubernetes it is the value of a node's label, "
            "so letters, digits, '-', '_' and '.'"
        )
    for option, number, least in (("nodes", options.nodes, 1), ("gpus", options.gpus, 0)):
        if number is not None and number < least:
            raise SpecError(f"--{option} {number}: at least {least}")
