"""Before anything runs on an allocation: which of its nodes answer, and what they are."""

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
"""How long a node may take to answer: a cold file system has to give Python first."""
SEEN_S = 1.5
"""A file system counts as shared where a node sees what is written here, and is seen here, within this; else files are
sent."""
MARK = "scaleproof-node "
"""Before an agent's answer on its output, where a node's shell may print things of its own."""
STREAM = "SCALEPROOF_STREAM"
"""1: send files also where a file system is shared."""


@dataclass(frozen=True, slots=True)
class NodeAnswer:
    """What an agent told of its node."""

    host: str
    boot: str
    machine: str
    cores: list[int]
    """Numbers of the processors that it may use."""
    interfaces: dict[str, str]
    """Name to IPv4 address."""
    own: str
    """The interface with the address that the node's name has; empty: none."""
    code: str
    shared: bool


def starters(allocation: Allocation, names: Sequence[str], launch: str) -> list[tuple[list[str], list[int]]]:
    """Commands that start an agent on each of these nodes, each with the numbers of those it starts."""
    paths = os.pathsep.join([str(IMPORT_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    words = [
        "env",
        f"{ENVIRONMENT}={launch}",
        f"PYTHONPATH={paths}",
        sys.executable,
        "-m",
        "scaleproof.launch.nodes.node_agent",
    ]
    if allocation.starter == "srun":
        assert allocation.job is not None
        return srun.commands(names, words, allocation.job.id)
    return ssh.commands(names, words)


def call(allocation: Allocation, results: Path) -> list[NodeAnswer]:
    """Every node's answer, in the allocation's order; SpecError names the first that gives none, or runs other code."""
    names = [host.name for host in allocation.hosts]
    results.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".roll-call-", dir=results) as name:
        folder = Path(name).resolve()
        nonce = "" if os.environ.get(STREAM) == "1" else secrets.token_hex(8)
        (folder / "nonce").write_text(nonce)
        asked = json.dumps({"roll_call": str(folder), "nonce": nonce, "hosts": names}).encode() + b"\n"
        found = _asked(allocation, names, asked, folder)
    for name, answer in found.items():
        if answer.code != code_digest():
            raise SpecError(
                f"node {name} runs other code ({answer.code}, here {code_digest()}): install the same version of Scaleproof on every node"
            )
    return [found[name] for name in names]


def _asked(allocation: Allocation, names: list[str], asked: bytes, folder: Path) -> dict[str, NodeAnswer]:
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
            _tell(process, asked)
        return _gathered(running, names, folder)
    finally:
        for process, *_ in running:
            process.kill()
            process.wait()


def _tell(process: subprocess.Popen[bytes], asked: bytes) -> None:
    assert process.stdin is not None
    with suppress(BrokenPipeError):  # it has ended, and its errors say why
        process.stdin.write(asked)
        process.stdin.flush()


def _gathered(
    running: list[tuple[subprocess.Popen[bytes], list[int], Path, Path]], names: list[str], folder: Path
) -> dict[str, NodeAnswer]:
    until, found = time.monotonic() + ANSWER_S, dict[str, NodeAnswer]()
    while True:
        for process, numbers, out, errors in running:
            ended = process.poll() is not None  # before its output is read
            found |= _answers(out, names)
            silent = [names[number] for number in numbers if names[number] not in found]
            if silent and (ended or time.monotonic() > until):
                why = (
                    _last(errors)
                    or _last(out)
                    or (f"it ended with code {process.returncode}" if ended else f"nothing within {ANSWER_S:g} s")
                )
                raise SpecError(f"node {', '.join(silent)} did not answer: {why}")
        if len(found) == len(names):
            return found
        for number in range(len(names)):
            if (folder / f"seen-{number}").exists() and not (folder / f"answer-{number}").exists():
                (folder / f"answer-{number}").touch()
        time.sleep(0.02)


def _answers(out: Path, names: list[str]) -> dict[str, NodeAnswer]:
    return answers_in(out.read_text(errors="replace"), names)


def answers_in(text: str, names: list[str]) -> dict[str, NodeAnswer]:
    """All answers that are whole, wherever in a line each begins: what starts agents may join their lines."""
    found = {}
    for part in text.split(MARK)[1:]:
        try:
            said, _ = json.JSONDecoder().raw_decode(part)
        except ValueError:
            continue  # the rest of it is on its way
        name = names[said.pop("number")]
        found[name] = NodeAnswer(**said)
    return found


def _last(path: Path) -> str:
    said = [line.strip() for line in path.read_text(errors="replace").splitlines() if line.strip() and MARK not in line]
    return said[-1][:300] if said else ""


def told(answer: NodeAnswer, number: int) -> str:
    """An agent's line."""
    return MARK + json.dumps({"number": number, **asdict(answer)})


def sees(header: dict[str, Any], number: int) -> bool:
    """On a node: whether this machine and the supervisor's see each other's files, at once."""
    folder = Path(header["roll_call"])
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
