"""Preflight among the ranks: the experiment's launcher starts as many ranks as the experiment has, on its interface;
their answers are checked."""

from __future__ import annotations

import secrets
import shutil
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scaleproof.core.launch_spec import PREFLIGHT, LaunchSpec
from scaleproof.core.record_schema import PreflightCheck
from scaleproof.launch.finish.failure_advice import ADVICE
from scaleproof.launch.nodes.allocated_nodes import AllocatedNodes, NodePlacement, node_fields, placement_for
from scaleproof.launch.preflight.machine_preflight import checked
from scaleproof.launch.start.execute import execute, launch_environment, new_watch, prepare
from scaleproof.launch.start.starter import launcher_for
from scaleproof.launch.watch.failure_signs import Sign
from scaleproof.paths import PACKAGE
from scaleproof.spec import registry
from scaleproof.spec.case import AnyCase, parse_case

MOST_RANKS = 64
"""At most so many ranks are started for a preflight."""
DEADLINE_S = {None: 45.0, "uml": 120.0, "qemu": 480.0}
"""By kind of guest: guests must boot first, and emulation (qemu) is about ten times slower."""
RANK_S = 1.0
"""What each rank adds to the deadline: every rank connects to all others."""
SLOW = 0.75
"""Share of the median core's speed below which a rank's core is called slow."""
_PROGRAMS = PACKAGE / "rank"
RankAnswers = Mapping[int, Mapping[str, Any]]
"""Rank to the facts that rank/preflight.py reported, with the comparison of clocks as `clock`."""


@dataclass(frozen=True, slots=True)
class Group:
    """The ranks of one preflight, which serves all cases with this launcher, fabric and interface."""

    launcher: str
    fabric: str
    interface: str
    ranks: int
    nodes: int = 1
    guest: str | None = None

    @property
    def summary(self) -> str:
        """For people."""
        return f"{self.ranks} ranks by {self.launcher} on {self.interface}" + (
            f" of {self.nodes} nodes" if registry.get("fabric", self.fabric).own_kernels else ""
        )


def groups(cases: Sequence[AnyCase]) -> dict[tuple[str, str, str], Group]:
    """One group per launcher, fabric and interface, with the largest number of ranks and of nodes."""
    by_key: dict[tuple[str, str, str], Group] = {}
    for case in cases:
        key = (case.launcher, case.fabric, case.interface)
        group = by_key.get(key, Group(*key, 1))
        by_key[key] = Group(
            *key,
            max(min(case.ranks, MOST_RANKS), group.ranks),
            max(min(case.nodes, MOST_RANKS), group.nodes),
            case.value("fabric.guest"),
        )
    return by_key


def answers_of(group: Group, staging: Path, allocated: AllocatedNodes | None = None) -> RankAnswers | PreflightCheck:
    """Start the ranks of a preflight; returns their answers, or a failed check when they did not answer."""
    values = {
        "program": "own",
        "suite": "preflight",
        "experiment": "preflight",
        "arm": "preflight",
        "entry": "preflight",
        "ranks": group.ranks,
    }
    case = parse_case(
        {
            **values,
            "launcher": group.launcher,
            "fabric": {"name": group.fabric} | ({"guest": group.guest} if group.guest else {}),
            "interface": group.interface,
            "nodes": group.nodes,
        }
    )
    deadline_s = DEADLINE_S[group.guest] + RANK_S * group.ranks
    facts = facts_of(case, _PROGRAMS, deadline_s, staging, placement_for(case, allocated))
    if isinstance(facts, Sign):
        return no_answer(facts, "ranks", f"{group.summary}: ")
    return {
        rank: {**answer["preflight"], "clock": answer.get("clock"), "clock_error": answer.get("clock_error")}
        for rank, answer in facts.items()
    }


def facts_of(
    case: AnyCase, programs: Path, deadline_s: float, staging: Path, placement: NodePlacement | None
) -> dict[int, dict[str, Any]] | Sign:
    """Start the ranks of a program of the harness like those of a launch; returns their facts, or a sign of what
    failed. Nothing is recorded."""
    address = placement.addresses[0] if placement else registry.load("fabric", case.fabric)(case.interface).address()
    launch_spec = LaunchSpec(
        launch=secrets.token_hex(8),
        case=case.model_dump(mode="json"),
        case_id=case.case_id,
        size=PREFLIGHT,
        plan_index=0,
        seed=0,
        token=secrets.token_hex(16),
        address=address,
        deadline_s=deadline_s,
        programs=str(programs),
        **node_fields(placement),
    )
    folder = staging / launch_spec.launch
    try:
        prepare(folder, launch_spec)
        launcher = launcher_for(case.fabric, case.launcher, placement)
        watch = new_watch(folder, launch_spec)
        ended = execute(folder, launch_spec, launcher, launch_environment(launch_spec, launcher, folder), watch)
        watch.board.close()
        return ended.cause or {rank: report["facts"] for rank, report in sorted(watch.reports.items())}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def no_answer(sign: Sign, code: str, prefix: str, passed: bool | None = False) -> PreflightCheck:
    """The check of ranks that did not answer; code `node_lost` where a node was lost. `prefix`: begins its message."""
    if sign.code == "node_lost":
        lost = checked("node_lost", False, sign.message, ADVICE["node_lost"])
        return lost.model_copy(update={"node": sign.node})
    return checked(code, passed, f"{prefix}{sign.code}: {sign.message}", ADVICE.get(sign.code, "read the message"))


def judge(answers: RankAnswers) -> list[PreflightCheck]:
    """All checks that follow from the ranks' answers."""
    return [names(answers), ports(answers), pairs(answers), clocks(answers), speed(answers)]


def names(answers: RankAnswers) -> PreflightCheck:
    """`localhost` must resolve. A host name that does not resolve gives a warning: transports use addresses, but a
    library that looks the name up cannot start."""
    unresolved = {rank: answer["unresolved"] for rank, answer in answers.items() if answer["unresolved"]}
    without_localhost = {rank: errors["localhost"] for rank, errors in unresolved.items() if "localhost" in errors}
    if without_localhost:
        rank, error = next(iter(without_localhost.items()))
        message = f"localhost does not resolve on rank {rank} ({error})"
        return checked("names", False, message, "add `127.0.0.1 localhost` to /etc/hosts")
    if unresolved:
        error = next(error for errors in unresolved.values() for error in errors.values())
        message = f"the host's own name does not resolve on ranks {', '.join(map(str, unresolved))} ({error})"
        return checked("names", True, message, "add the name to /etc/hosts, for libraries that look it up themselves")
    own = sorted(
        {address for answer in answers.values() for name, address in answer["resolves"].items() if name != "localhost"}
    )
    return checked("names", True, f"localhost resolves, and the host's own name to {', '.join(own)}")


def ports(answers: RankAnswers) -> PreflightCheck:
    """Every rank could open as many listening ports as a transport may need."""
    without = {rank: answer for rank, answer in answers.items() if answer["port_error"]}
    if without:
        rank, answer = next(iter(without.items()))
        message = f"rank {rank} got {answer['ports']} ports: {answer['port_error']}"
        return checked(
            "ports",
            False,
            message,
            "widen net.ipv4.ip_local_port_range, end what holds ports, or check that the interface's address is up",
        )
    fewest = min(answer["ports"] for answer in answers.values())
    return checked("ports", True, f"every rank could open {fewest} free ports at once")


def pairs(answers: RankAnswers) -> PreflightCheck:
    """Every pair of ranks connected on the requested interface's address."""
    unconnected = [
        (rank, int(peer), reason) for rank, answer in answers.items() for peer, reason in answer["unreachable"].items()
    ]
    if unconnected:
        rank, peer, reason = unconnected[0]
        message = f"{len(unconnected)} pairs cannot connect, first rank {rank} to rank {peer}: {reason}"
        return checked(
            "pairs",
            False,
            message,
            "look at firewall rules and routes of this interface, or name another one with `interface:`",
        )
    return checked(
        "pairs", True, f"{sum(range(len(answers)))} pairs of {len(answers)} ranks connected and proved who they are"
    )


def clocks(answers: RankAnswers) -> PreflightCheck:
    """Ranks of one machine share a monotonic clock: their readings may not differ by more than the uncertainty of the
    comparison. The offsets of other machines are measured."""
    home = answers[min(answers)]["host"] if answers else ""
    errors = [f"rank {rank}: {answer['clock_error']}" for rank, answer in answers.items() if answer.get("clock_error")]
    if errors:
        return checked(
            "clock",
            None,
            f"clocks could not be compared: {errors[0]}",
            "times of different ranks may not be on one clock",
        )
    readings = {rank: answer["clock"] for rank, answer in answers.items() if answer.get("clock")}
    apart = {rank: clock for rank, clock in readings.items() if abs(clock["offset_ns"]) > clock["uncertainty_ns"]}
    on_same_machine = [rank for rank in apart if answers[rank]["host"] == home]
    if on_same_machine:
        first = on_same_machine[0]
        clock = readings[first]
        message = (
            f"rank {first} is {clock['offset_ns']} ns from rank 0 on one machine, "
            f"uncertain by {clock['uncertainty_ns']} ns"
        )
        return checked(
            "clock",
            False,
            message,
            "ranks in time namespaces of their own, or a broken clock source; see the record's clocksource",
        )
    if apart:
        return checked(
            "clock", True, f"clocks of {len(apart)} ranks on other machines differ; each launch measures the offset"
        )
    return checked("clock", True, f"one monotonic clock for {max(len(readings), 1)} ranks")


def speed(answers: RankAnswers) -> PreflightCheck:
    """The sniff test of cores: one core of each rank multiplies matrices; the slowest rank is named."""
    gflops = {rank: float(answer["gflops"]) for rank, answer in answers.items() if answer["gflops"] is not None}
    if not gflops:
        return checked("speed", None, "no rank had a core of its own for the sniff test", "")
    middle, slowest = statistics.median(gflops.values()), min(gflops, key=lambda rank: gflops[rank])
    hosts = {rank: str(answer["host"]).partition("/")[0] for rank, answer in answers.items()}
    where = f" on {hosts[slowest]}" if len(set(hosts.values())) > 1 else ""
    message = (
        f"sniff test of one core a rank: median {middle:.1f} GFLOP/s, "
        f"slowest rank {slowest}{where} with {gflops[slowest]:.1f}"
    )
    # Of two ranks the median lies between them: they are compared with the faster one.
    slow = gflops[slowest] < SLOW * (middle if len(gflops) > 2 else max(gflops.values()))
    return checked(
        "speed",
        True,
        message,
        f"rank {slowest}'s core is slow: end what else runs there, or leave that node out" if slow else "",
    )
