"""A process that another one has forked and that this process has adopted, with what of `subprocess.Popen` a launch
needs."""

from __future__ import annotations

import os
import select
import signal
import subprocess


class AdoptedProcess:
    """`returncode`: as in Popen, also 0 where somebody else has reaped it."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """The exit code, negative for a signal; None while it lives."""
        if self.returncode is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:
                self.returncode = 0
            else:
                self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """The exit code once it has ended; subprocess.TimeoutExpired after `timeout` s."""
        if self.poll() is None:
            with os.fdopen(os.pidfd_open(self.pid)) as ending:
                select.select([ending], [], [], timeout)
        code = self.poll()
        if code is None:
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0.0)
        return code

    def kill(self) -> None:
        """SIGKILL, unless it has been reaped."""
        self._send(signal.SIGKILL)

    def terminate(self) -> None:
        """SIGTERM, unless it has been reaped."""
        self._send(signal.SIGTERM)

    def _send(self, number: signal.Signals) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)


LauncherProcess = subprocess.Popen[bytes] | AdoptedProcess
"""The process that starts the ranks of a launch."""
