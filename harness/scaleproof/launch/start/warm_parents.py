"""Processes that have imported what the launches of an experiment need; the parent of a launch's ranks is forked from
one of them (rank/warm_parent.py), in place of a new interpreter that imports everything anew."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from scaleproof.core.launch_spec import ENVIRONMENT, LaunchSpec
from scaleproof.launch.adopted_process import AdoptedProcess
from scaleproof.rank.warm_parent import MODULE, NOBODY

FORKS_RANKS = "scaleproof.rank.fork_ranks"
END_S = 5.0
Kind = tuple[int, str, str]
"""Threads, framework and transport of a case: libraries read at import how many threads they have, and some do not
bear each other."""


@dataclass(frozen=True, slots=True)
class _Warm:
    process: subprocess.Popen[bytes]
    requests: socket.socket

    def end(self) -> None:
        self.requests.close()
        try:
            self.process.wait(END_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class WarmParents:
    """One for each kind of case, started when the first launch of the kind is."""

    def __init__(self) -> None:
        self._warm: dict[Kind, _Warm] = {}

    def fork(
        self, folder: Path, launch_spec: LaunchSpec, command: list[str], variables: dict[str, str], files: list[int]
    ) -> AdoptedProcess | None:
        """The process of a command that forks ranks, with its standard input and its log; None for any other command,
        and where the process that should have forked it has ended."""
        python, *of_python = command
        if python != sys.executable or of_python[:2] != ["-m", FORKS_RANKS]:
            return None
        case = launch_spec.parsed_case
        kind = (case.threads_per_rank, str(case.value("framework")), str(case.value("transport")))
        request = {
            "folder": str(folder),
            "launch": launch_spec.launch,
            "arguments": of_python[2:],
            "variables": variables,
        }
        try:
            if kind not in self._warm:
                self._warm[kind] = _started(launch_spec, variables)
            requests = self._warm[kind].requests
            requests.settimeout(launch_spec.deadline_s)
            socket.send_fds(requests, [json.dumps(request).encode()], files)
            answer = requests.recv(32)
        except OSError:
            answer = NOBODY
        if answer in (NOBODY, b""):
            self._end(kind)
            return None
        return AdoptedProcess(int(answer))

    def close(self) -> None:
        """End them all."""
        for kind in list(self._warm):
            self._end(kind)

    def _end(self, kind: Kind) -> None:
        if kind in self._warm:
            self._warm.pop(kind).end()


def _started(launch_spec: LaunchSpec, variables: dict[str, str]) -> _Warm:
    """Its variables are those of a launch, but it belongs to none: what it forks writes its launch over the zeros."""
    own = {**variables, ENVIRONMENT: "0" * len(launch_spec.launch)}
    del own["TMPDIR"]
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-m", MODULE, str(os.getpid())],
            env=own,
            stdin=theirs.fileno(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    return _Warm(process, ours)
