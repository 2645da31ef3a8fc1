"""Output of set-up: a line per step with [n/m] and elapsed time, and progress within the long ones."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

LIVE_EVERY_S = 0.5
PLAIN_EVERY_S = 20.0


class SetupError(Exception):
    """Set-up cannot continue; the message is one line that says what to do."""


class CommandError(Exception):
    """A command ended with an error; `output` is all that it wrote."""

    def __init__(self, argv: Sequence[str], code: int, output: str) -> None:
        super().__init__(f"{' '.join(argv[:4])} ended with {code}")
        self.output = output


def clock(seconds: float) -> str:
    """Minutes and seconds, 07:05."""
    return f"{int(seconds) // 60:02d}:{int(seconds) % 60:02d}"


def exit_code_of(work: Callable[[], object], name: str) -> int:
    """Run `work` and return its exit code. Errors are printed as one line; SIGTERM stops it like Ctrl-C."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        work()
    except SetupError as error:
        print(f"\n{name}: {error}", file=sys.stderr)
        return 1
    except CommandError as error:
        print(f"\n{name}: {error}; its last lines:\n{error.output[-2000:]}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"\n{name}: interrupted; type the same command again to continue from here", file=sys.stderr)
        return 130
    return 0


class Steps:
    """Prints `[2/6] title  detail  00:12`; rewrites the line on a terminal, prints a new line every 20 s elsewhere."""

    def __init__(self, total: int, out: IO[str] | None = None, now: Callable[[], float] = time.monotonic) -> None:
        self.total, self.out, self.now = total, out or sys.stdout, now
        self.number, self.title, self.started, self.shown = 0, "", now(), 0.0
        self.live = self.out.isatty()

    def begin(self, title: str) -> None:
        """Start the next step."""
        self.number, self.title, self.started = self.number + 1, title, self.now()
        self.shown = self.now()
        if self.live:
            self._write("\r" + self._line(""))
        else:
            self._write(self._line("") + "\n")

    def progress(self, detail: str) -> None:
        """Show the progress of the step; most calls print nothing."""
        if self.now() - self.shown < (LIVE_EVERY_S if self.live else PLAIN_EVERY_S):
            return
        self.shown = self.now()
        self._write(("\r\x1b[K" if self.live else "") + self._line(detail) + ("" if self.live else "\n"))

    def end(self, detail: str = "done") -> None:
        """Finish the step."""
        self._write(("\r\x1b[K" if self.live else "") + self._line(detail) + "\n")

    def _line(self, detail: str) -> str:
        took = clock(self.now() - self.started) if detail else ""
        return f"[{self.number}/{self.total}] {self.title:<34} {detail:<28} {took}".rstrip()

    def _write(self, text: str) -> None:
        self.out.write(text)
        self.out.flush()


def run(
    argv: Sequence[str],
    log: Path,
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    line: Callable[[str], None] | None = None,
) -> str:
    """Run a command in a process group of its own with its output in `log`; call `line` for every line, and with ""
    when a second passes without output. Returns the output; raises CommandError. An interruption of this process ends
    the whole group."""
    log.parent.mkdir(parents=True, exist_ok=True)
    collected: list[str] = []
    with log.open("a", errors="replace") as file:
        file.write("$ " + " ".join(argv) + "\n")
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=env,
            cwd=cwd,
            start_new_session=True,
        )
        try:
            for text in _lines(process):
                if text:
                    collected.append(text)
                    file.write(text + "\n")
                if line:
                    line(text)
            code = process.wait()
        except BaseException:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait()
            raise
    output = "\n".join(collected)
    if code:
        raise CommandError(argv, code, output)
    return output


def _lines(process: subprocess.Popen[bytes]) -> Iterator[str]:
    assert process.stdout is not None
    rest = b""
    while True:
        ready, _, _ = select.select([process.stdout], [], [], 1.0)
        if not ready:
            yield ""
            continue
        chunk = os.read(process.stdout.fileno(), 65536)
        if not chunk:
            break
        *lines, rest = (rest + chunk).split(b"\n")
        yield from (text.decode(errors="replace").rstrip() for text in lines)
    if rest:
        yield rest.decode(errors="replace").rstrip()
