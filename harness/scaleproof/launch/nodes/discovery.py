"""Node discovery, before any launch on an allocation: which of its nodes answer, and what hardware and code they
have."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from scaleproof.core.launch_spec import ENVIRONMENT
from scaleproof.launch.nodes import srun, ssh
from scaleproof.launch.nodes.forwarded_variables import for_starter
from scaleproof.launch.nodes.requested_nodes import Allocation
from scaleproof.paths import IMPORT_ROOT
from scaleproof.record.digest import code_digest
from scaleproof.spec.errors import SpecError

ANSWER_S = 60.0
"""How long a node may take to answer: Python may have to be read from a cold file system first."""
SEEN_S = 1.5
"""A file system counts as shared where, within this time, a node sees a file of the supervisor and the supervisor sees
a file of the node; else files are sent."""
MARK = "scaleproof-node "
"""Prefix of an agent's answer on its output, since a node's shell may print other lines."""
STREAM = "SCALEPROOF_STREAM"
"""1: send files also where a file system is shared."""


@dataclass(frozen=True, slots=True)
class NodeAnswer:
    """What an agent reports of its node."""

    host: str
    boot: str
    machine: str
    cores: list[int]
    """Numbers of the processors that the agent may use."""
    interfaces: dict[str, str]
    """Name to IPv4 address."""
    own: str
    """The interface with the address of the node's name; empty: none."""
    code: str
    shared: bool


def starters(allocation: Allocation, names: Sequence[str], launch: str) -> list[tuple[list[str], list[int]]]:
    """Commands that start an agent on each of these nodes, each with the numbers of the nodes that it serves."""
    paths = os.pathsep.join([str(IMPORT_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    agent = [
        "env",
        f"{ENVIRONMENT}={launch}",
        f"PYTHONPATH={paths}",
        sys.executable,
        "-m",
        "scaleproof.launch.nodes.node_agent",
    ]
    if allocation.starter == "srun":
        assert allocation.job is not None
        return srun.commands(names, agent, allocation.job.id)
    return ssh.commands(names, agent)


def discover(allocation: Allocation, results: Path) -> list[NodeAnswer]:
    """Every node's answer, in the allocation's order; SpecError names the first node that does not answer, or that has
    another version of the code."""
    names = [host.name for host in allocation.hosts]
    results.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".discovery-", dir=results) as name:
        folder = Path(name).resolve()
        nonce = "" if os.environ.get(STREAM) == "1" else secrets.token_hex(8)
        (folder / "nonce").write_text(nonce)
        request = json.dumps({"discovery": str(folder), "nonce": nonce, "hosts": names}).encode() + b"\n"
        answers = _answers_of_all(allocation, names, request, folder)
    for name, answer in answers.items():
        if answer.code != code_digest():
            raise SpecError(
                f"node {name} has another version of the code ({answer.code}, here {code_digest()}): "
                "install the same version of Scaleproof on every node"
            )
    return [answers[name] for name in names]


def _answers_of_all(allocation: Allocation, names: list[str], request: bytes, folder: Path) -> dict[str, NodeAnswer]:
    launch = secrets.token_hex(8)
    running = []
    try:
        for command, numbers in starters(allocation, names, launch):
            out, errors = (folder / f".{kind}-{numbers[0]}" for kind in ("out", "errors"))
            with out.open("wb") as output, errors.open("wb") as error:
                own = for_starter(command[0], os.environ)
                process = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=output, stderr=error, env=own, start_new_session=True
                )
            running.append((process, numbers, out, errors))
            _send(process, request)
        return _gather(running, names, folder)
    finally:
        for process, *_ in running:
            process.kill()
            process.wait()


def _send(process: subprocess.Popen[bytes], request: bytes) -> None:
    assert process.stdin is not None
    with suppress(BrokenPipeError):  # it has ended, and its standard error says why
        process.stdin.write(request)
        process.stdin.flush()


def _gather(
    running: list[tuple[subprocess.Popen[bytes], list[int], Path, Path]], names: list[str], folder: Path
) -> dict[str, NodeAnswer]:
    until, answers = time.monotonic() + ANSWER_S, dict[str, NodeAnswer]()
    while True:
        for process, numbers, out, errors in running:
            ended = process.poll() is not None  # first, so that the output is complete if it has ended
            answers |= answers_in(out.read_text(errors="replace"), names)
            silent = [names[number] for number in numbers if names[number] not in answers]
            if silent and (ended or time.monotonic() > until):
                why = (
                    _last(errors)
                    or _last(out)
                    or (f"it ended with code {process.returncode}" if ended else f"nothing within {ANSWER_S:g} s")
                )
                raise SpecError(f"node {', '.join(silent)} did not answer: {why}")
        if len(answers) == len(names):
            return answers
        for number in range(len(names)):
            if (folder / f"seen-{number}").exists() and not (folder / f"answer-{number}").exists():
                (folder / f"answer-{number}").touch()
        time.sleep(0.02)


def answers_in(text: str, names: list[str]) -> dict[str, NodeAnswer]:
    """All complete answers. Each may begin anywhere in a line: the program that starts agents may join their lines."""
    answers = {}
    for part in text.split(MARK)[1:]:
        try:
            fields, _ = json.JSONDecoder().raw_decode(part)
        except ValueError:
            continue  # it is not complete yet
        name = names[fields.pop("number")]
        answers[name] = NodeAnswer(**fields)
    return answers


def _last(path: Path) -> str:
    lines = [
        line.strip() for line in path.read_text(errors="replace").splitlines() if line.strip() and MARK not in line
    ]
    return lines[-1][:300] if lines else ""


def answer_line(answer: NodeAnswer, number: int) -> str:
    """The line in which an agent answers."""
    return MARK + json.dumps({"number": number, **asdict(answer)})


def sees_shared_folder(header: dict[str, Any], number: int) -> bool:
    """Called on a node: whether this machine and the supervisor's see each other's files without delay."""
    folder = Path(header["discovery"])
    try:
        if not header["nonce"] or (folder / "nonce").read_text() != header["nonce"]:
            return False
        (folder / f"seen-{number}").touch()
    except OSError:
        return False
    until = time.monotonic() + SEEN_S
    while time.monotonic() < until:
        if (folder / f"answer-{number}").exists():
            return True
        time.sleep(0.02)
    return False
