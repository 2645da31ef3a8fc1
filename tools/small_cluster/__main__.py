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


def main(words: list[str]) -> int:
    """Exit code 1 with one line when something is wrong."""
    given = _parser().parse_args(words)
    try:
        return int(given.act(given) or 0)
    except small.ClusterError as error:
        print(f"small_cluster: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.small_cluster", description=__doc__)
    parser.add_argument("--name", default="small", help="of the cluster, where there are several (default: small)")
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    up = actions.add_parser("up", help="start a cluster of N nodes")
    up.add_argument("nodes", type=int, metavar="N")
    up.add_argument(
        "--rate", type=_mbit, help="of every node's link, like 1gbit or 100mbit (default: as fast as it goes)"
    )
    up.add_argument(
        "--gpus", type=int, default=0, help="that each node seems to have: counted by Slurm, no device behind them"
    )
    up.add_argument("--cpus", type=int, help="that each node seems to have (default: those of this machine)")
    up.set_defaults(act=_up)
    actions.add_parser("down", help="end it and remove all of it").set_defaults(act=_down)
    actions.add_parser("status", help="nodes and jobs").set_defaults(act=_status)
    actions.add_parser("env", help='for a shell: eval "$(python -m tools.small_cluster env)"').set_defaults(act=_env)
    run = actions.add_parser("exec", help="run a command on a node, or on `head`")
    run.add_argument("node")
    run.add_argument("command", nargs=argparse.REMAINDER)
    run.set_defaults(act=_exec)
    for word, what in {
        "off": "cut a node's power",
        "on": "give it back",
        "cut": "pull a node's cable",
        "mend": "put it back",
    }.items():
        act = actions.add_parser(word, help=what)
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


def _up(given: argparse.Namespace) -> None:
    started = time.monotonic()
    cluster = small.up(given.nodes, given.name, rate_mbit=given.rate, gpus=given.gpus, cpus=given.cpus)
    print(
        f"{cluster.name}: {cluster.nodes} nodes are up after {time.monotonic() - started:.1f} s; a shell reaches them after"
    )
    print(f'eval "$(python -m tools.small_cluster --name {cluster.name} env)"')


def _down(given: argparse.Namespace) -> None:
    running = {cluster.name: cluster for cluster in clusters()}
    if given.name in running:
        small.down(running[given.name])
    print(f"{given.name}: {'ended' if given.name in running else 'was not up'}")


def _status(given: argparse.Namespace) -> None:
    cluster = small.find(given.name)
    print(small.ask(cluster, "sinfo", "-N", "-l") + small.ask(cluster, "squeue"), end="")


def _env(given: argparse.Namespace) -> None:
    print(f"export SLURM_CONF={shlex.quote(str(small.find(given.name).configuration))}")


def _exec(given: argparse.Namespace) -> int:
    if not given.command:
        raise small.ClusterError("exec what? Name a node and a command")
    return small.run_on(small.find(given.name), given.node, given.command)


def _change(given: argparse.Namespace) -> None:
    cluster, word = small.find(given.name), given.word
    small.change(
        cluster, given.node, **({"on": word == "on"} if word in ("on", "off") else {"plugged": word == "mend"})
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
