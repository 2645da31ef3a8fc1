"""A launch over several nodes as one object for Kubernetes: an MPIJob or a PyTorchJob, rendered from the templates beside this file."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path

import jinja2

from harness.spec.case import AnyCase
from harness.spec.errors import SpecError
from harness.spec.estimate import estimate
from harness.spec.suite import Suite

KINDS = {"mpijob": "mpirun", "pytorchjob": "torchrun"}
"""Each kind with the launcher that suits it."""
LONGEST_NAME = 40
"""Characters: operators add words to it, and a pod's name has at most 63."""
_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?$")
_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@-]*$")
_HOST = "host"
GIB = 1 << 30
START_S = 60
"""Added to the deadline of every launch: what starts and ends around it."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a person chooses; the rest follows from the experiment."""

    kind: str
    image: str
    namespace: str = "default"
    name: str = ""
    nodes: int = 2
    gpus: int = 0
    """Of each pod."""
    claim: str = "scaleproof"
    """Volume claim that keeps the records."""
    secret: str = "scaleproof-ssh"
    """Keys with which the pods of a PyTorchJob reach each other; an MPIJob's operator makes its own."""


def render(suite: Suite, experiment: str, size: str, wanted: Wanted) -> str:
    """The object as YAML. SpecError for what Kubernetes would refuse, and for an experiment that does not run over nodes."""
    chosen = suite.experiment(experiment).size(size)
    cases = [case for case in chosen.cases if case.fabric == _HOST]
    if not cases:
        fabrics = ", ".join(sorted({case.fabric for case in chosen.cases}))
        raise SpecError(f"experiment {experiment!r} at size {size!r} has no case on the host's network (fabric {fabrics}); it needs no nodes of a cluster")
    name = wanted.name or "-".join(["scaleproof", suite.name, experiment]).lower().replace("_", "-")
    _check(wanted, name)
    slots = ceil(max(case.ranks for case in cases) / wanted.nodes)
    launches = (chosen.stop.budget if chosen.stop else chosen.launches) * len(chosen.cases)
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    run = ["scaleproof", "run", suite.name, experiment, "--size", size, "--results", "/results", "--launcher", KINDS[wanted.kind], "--hosts"]
    return environment.get_template(f"{wanted.kind}.yaml.j2").render(
        name=name, wanted=wanted, title=f"{suite.name} {experiment} at size {size}", run=shlex.join(run), slots=slots,
        hosts=[f"{name}-master-0", *(f"{name}-worker-{number}" for number in range(wanted.nodes - 1))],
        cores=slots * max(case.threads_per_rank for case in cases), memory_gib=_memory_gib(cases),
        deadline_s=ceil(launches * (chosen.deadline_s + START_S)),
    )  # fmt: skip


def _memory_gib(cases: Sequence[AnyCase]) -> int:
    """Enough for all ranks of the largest case in one pod, and for as much again in /dev/shm."""
    return 2 * ceil(max(estimate(case, {}).nbytes for case in cases) / GIB)


def _check(wanted: Wanted, name: str) -> None:
    for option, value in (("name", name), ("namespace", wanted.namespace), ("claim", wanted.claim), ("secret", wanted.secret)):
        if not _LABEL.match(value):
            raise SpecError(f"--{option} {value!r}: Kubernetes takes lower-case letters, digits and '-' here, and begins and ends with a letter or digit")
    if len(name) > LONGEST_NAME:
        raise SpecError(f"--name {name!r} has {len(name)} characters; with what is added to it a pod's name leaves room for {LONGEST_NAME}")
    if not _IMAGE.match(wanted.image):
        raise SpecError(f"--image {wanted.image!r} is no name of an image; write it like registry.example/scaleproof:1")
    if wanted.nodes < 1 or wanted.gpus < 0:
        raise SpecError(f"--nodes {wanted.nodes} and --gpus {wanted.gpus}: at least 1 node, and no negative number of GPUs")
