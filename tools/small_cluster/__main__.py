"""`python -m tools.small_cluster up 4`, then `eval "$(python -m tools.small_cluster env)"` and any command of Slurm;
`down` removes all of it."""

from __future__ import annotations

import argparse
import shlex
import sys
import time

from scaleproof.fabric.small_clusters import clusters
from tools.small_cluster import cluster as small

UNITS = {"kbit": 1e-3, "mbit": 1.0, "gbit": 1e3}


def main(arguments: list[str]) -> int:
    """Exit code 1 with one line when something is wrong."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.act(options) or 0)
    except small.ClusterError as error:
        print(f"small_cluster: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.small_cluster", description=__doc__)
    parser.add_argument("--name", default="small", help="name of the cluster, where there are several (default: small)")
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    up = actions.add_parser("up", help="start a cluster of N nodes")
    up.add_argument("nodes", type=int, metavar="N")
    up.add_argument("--rate", type=_mbit, help="rate of every node's link, like 1gbit or 100mbit (default: unlimited)")
    up.add_argument(
        "--gpus", type=int, default=0, help="GPUs that each node reports to Slurm; there is no device behind them"
    )
    up.add_argument("--cpus", type=int, help="CPUs that each node reports to Slurm (default: those of this machine)")
    up.set_defaults(act=_up)
    actions.add_parser("down", help="end it and remove all of it").set_defaults(act=_down)
    actions.add_parser("status", help="nodes and jobs").set_defaults(act=_status)
    actions.add_parser("env", help='for a shell: eval "$(python -m tools.small_cluster env)"').set_defaults(act=_env)
    run = actions.add_parser("exec", help="run a command on a node, or on `head`")
    run.add_argument("node")
    run.add_argument("command", nargs=argparse.REMAINDER)
    run.set_defaults(act=_exec)
    for word, description in {
        "off": "switch a node off",
        "on": "switch it on again",
        "cut": "unplug a node's cable",
        "mend": "plug it in again",
    }.items():
        act = actions.add_parser(word, help=description)
        act.add_argument("node")
        act.set_defaults(act=_change, word=word)
    return parser


def _mbit(text: str) -> float:
    for unit, factor in UNITS.items():
        if text.endswith(unit):
            try:
                return float(text.removesuffix(unit)) * factor
            except ValueError:
                break
    raise argparse.ArgumentTypeError(f"{text!r} is no rate; write it like 100mbit or 1gbit")


def _up(options: argparse.Namespace) -> None:
    started = time.monotonic()
    cluster = small.up(options.nodes, options.name, rate_mbit=options.rate, gpus=options.gpus, cpus=options.cpus)
    print(
        f"{cluster.name}: {cluster.nodes} nodes are up after {time.monotonic() - started:.1f} s; "
        "to use them in a shell, type"
    )
    print(f'eval "$(python -m tools.small_cluster --name {cluster.name} env)"')


def _down(options: argparse.Namespace) -> None:
    running = {cluster.name: cluster for cluster in clusters()}
    if options.name in running:
        small.down(running[options.name])
    print(f"{options.name}: {'ended' if options.name in running else 'was not up'}")


def _status(options: argparse.Namespace) -> None:
    cluster = small.find(options.name)
    print(small.slurm_output(cluster, "sinfo", "-N", "-l") + small.slurm_output(cluster, "squeue"), end="")


def _env(options: argparse.Namespace) -> None:
    print(f"export SLURM_CONF={shlex.quote(str(small.find(options.name).configuration))}")


def _exec(options: argparse.Namespace) -> int:
    if not options.command:
        raise small.ClusterError("exec needs a node and a command")
    return small.run_on(small.find(options.name), options.node, options.command)


def _change(options: argparse.Namespace) -> None:
    cluster, word = small.find(options.name), options.word
    small.change(
        cluster, options.node, **({"on": word == "on"} if word in ("on", "off") else {"plugged": word == "mend"})
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
