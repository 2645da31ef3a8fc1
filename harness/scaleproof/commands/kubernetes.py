"""Prints an experiment over several nodes as an MPIJob or a PyTorchJob for `kubectl apply -f -`. Pods, ranks, cores,
memory and deadline come from the experiment. Checked against published schemas, not tried on a live cluster
(docs/kubernetes.md)."""

from __future__ import annotations

import argparse

from scaleproof.commands.common import size_argument, size_of, suites_argument

HELP = "an experiment over several nodes as an object for Kubernetes"
EXAMPLE = (
    "scaleproof kubernetes das2016 throughput --kind mpijob --image registry.example/scaleproof:1 --nodes 4 | "
    "kubectl apply -f -"
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command to `parser`."""
    parser.add_argument("suite", metavar="SUITE", help="a suite's name, as the image has it")
    parser.add_argument("experiment", metavar="EXPERIMENT", help="one experiment")
    size_argument(parser)
    suites_argument(parser)
    parser.add_argument(
        "--kind", required=True, metavar="KIND", help="mpijob (mpi-operator) or pytorchjob (training-operator)"
    )
    parser.add_argument("--image", required=True, metavar="NAME", help="image built from containers/Dockerfile")
    parser.add_argument("--nodes", type=int, metavar="N", help="pods with ranks (default: as the experiment says)")
    parser.add_argument(
        "--gpus", type=int, metavar="N", help="GPUs of each of these pods (default: as the experiment says)"
    )
    parser.add_argument(
        "--namespace", default="default", metavar="NAME", help="namespace of the object (default: default)"
    )
    parser.add_argument(
        "--name", default="", metavar="NAME", help="name of the object (default: scaleproof-SUITE-EXPERIMENT)"
    )
    parser.add_argument(
        "--claim",
        default="scaleproof",
        metavar="NAME",
        help="the volume claim for the records (default: scaleproof)",
    )
    parser.add_argument(
        "--secret",
        default="scaleproof-ssh",
        metavar="NAME",
        help="a PyTorchJob's keys for ssh (default: scaleproof-ssh)",
    )


def main(options: argparse.Namespace) -> int:
    """Print the object."""
    from scaleproof.launch.manifests import KINDS, ManifestOptions, render
    from scaleproof.spec.errors import SpecError
    from scaleproof.spec.registry import nearest
    from scaleproof.spec.suite import load_suite

    if options.kind not in KINDS:
        raise SpecError(f"unknown kind {options.kind!r}; {nearest(options.kind, list(KINDS))}")
    names = ("kind", "image", "namespace", "name", "nodes", "gpus", "claim", "secret")
    manifest_options = ManifestOptions(**{name: getattr(options, name) for name in names})
    print(
        render(load_suite(options.suite, options.suites), options.experiment, size_of(options), manifest_options),
        end="",
    )
    return 0
