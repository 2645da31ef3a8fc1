"""Spark's Java processes, started without its shell scripts, and what is wrong where one does not start."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from suite_programs.class_archive import archive_of, class_path

from scaleproof.rank.process_lifetime import ending_with_this_process

LEAST_JAVA = 17
"""Of Spark 4."""
QUIET = "-Xshare:auto -XX:-UsePerfData"
"""Without performance data nothing is left in the folder of temporary files."""
FAST = f"{QUIET} -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For processes that live for seconds and compute nothing: master, worker and driver. Executors have Java's defaults,
but Spark in one process computes in its driver."""
_SETTINGS = ("SPARK_", "PYSPARK_", "_PYSPARK_")
_JAVA_OPTIONS = ("JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS")
_OPENED = (
    "java.lang java.lang.invoke java.lang.reflect java.io java.net java.nio java.util java.util.concurrent "
    "java.util.concurrent.atomic jdk.internal.ref sun.nio.ch sun.nio.cs sun.security.action sun.util.calendar"
)
MODULES = [
    "-XX:+IgnoreUnrecognizedVMOptions",
    *(f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in _OPENED.split()),
    "-Djdk.reflect.useDirectMethodHandle=false",
    "-Dio.netty.tryReflectionSetAccessible=true",
]
"""What Spark's own launcher opens to it since Java 17."""
POLL_S = 0.01
LONGEST_CAUSE = 160
_CAUSE = re.compile(r"(?:[\w.$]+(?:Exception|Error)|Error)\b.*")


def pause() -> None:
    """Between two looks at a process or a file."""
    time.sleep(POLL_S)


class SparkDidNotStart(RuntimeError):
    """Its message says in one line what is wrong."""

    code = "start_failed"


@dataclass(slots=True)
class Jvm:
    """A running process, its name for people, its log, and the address that it was to bind."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path
    at: str = ""

    def awaited(self, pattern: str, timeout_s: float) -> str:
        """The first group of a line of the log; SparkDidNotStart where the process ends before, or it takes too
        long."""
        deadline = time.monotonic() + timeout_s
        while True:
            ended = self.process.poll() is not None
            if found := re.search(pattern, self.log.read_text(errors="replace")):
                return found.group(1)
            if ended:
                raise SparkDidNotStart(f"{self.name} did not start{self.at}: {self.cause()}")
            if time.monotonic() > deadline:
                raise SparkDidNotStart(f"{self.name} did not start{self.at} within {timeout_s:g} s")
            pause()

    def cause(self) -> str:
        """Of its end, as its log names it."""
        return cause_of(self.log.read_text(errors="replace"), self.process.returncode)

    def end(self, timeout_s: float) -> bool:
        """Lets it end by itself, as it does when its input does; whether it did."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            return self.process.wait(timeout_s) == 0
        except subprocess.TimeoutExpired:
            self.kill()
            return False

    def kill(self) -> None:
        """Ends it, if it has not ended, and reaps it."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


def cause_of(log: str, code: int | None) -> str:
    """The first exception or error that a log names, in one line."""
    for line in log.splitlines():
        if " WARN " not in line and (found := _CAUSE.search(line)):
            return found.group(0)[:LONGEST_CAUSE]
    last = next((line.strip() for line in reversed(log.splitlines()) if line.strip()), "it printed nothing")
    return f"{last[:LONGEST_CAUSE]} (exit code {code})"


def java() -> Path:
    """The Java to use; SparkDidNotStart where there is none, or an old one."""
    home = os.environ.get("JAVA_HOME")
    if home:
        found = Path(home) / "bin" / "java"
        if not found.is_file():
            raise SparkDidNotStart(f"no Java: JAVA_HOME is {home}, and there is no {found}")
    else:
        path = shutil.which("java")
        if path is None:
            raise SparkDidNotStart("no Java: JAVA_HOME is not set, and no folder of PATH has a program 'java'")
        found = Path(path)
    version = version_of(found)
    if version is not None and version < LEAST_JAVA:
        raise SparkDidNotStart(f"Java is too old: {found} is version {version}, Spark needs {LEAST_JAVA}")
    return found


def version_of(program: Path) -> int | None:
    """Of a Java, as the file `release` of its home states it; None where there is no such file."""
    release = program.resolve().parent.parent / "release"
    if not release.is_file():
        return None
    found = re.search(r'JAVA_VERSION="(?:1\.)?(\d+)', release.read_text(errors="replace"))
    return int(found.group(1)) if found else None


def spark_home() -> Path:
    """The folder of pyspark, which has Spark's jars; SparkDidNotStart where it is not installed."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise SparkDidNotStart("pyspark is not installed")
    return Path(spec.origin).parent


def archive() -> Path:
    """Of the Java and the Spark that are used; it may not be there yet."""
    return archive_of(java(), spark_home(), importlib.metadata.version("pyspark"), FAST)


def with_archive(flags: str) -> str:
    """Flags of Java, and the archive of classes where it is there."""
    found = archive()
    return f"{flags} -XX:SharedArchiveFile={found}" if found.exists() else flags


def is_setting(name: str) -> bool:
    """Whether a variable of the environment changes a Spark or a Java that is started below it."""
    return name.startswith(_SETTINGS) or name in _JAVA_OPTIONS


def start(
    name: str,
    main: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    memory: str = "256m",
    flags: Sequence[str] = (),
) -> Jvm:
    """Starts a class of Spark with its arguments, and without settings of the user's own Spark or Java. It ends with
    this process, and its output goes to `folder`."""
    program, home = java(), spark_home()
    log = folder / f"{name.replace(' ', '-')}.log"
    command = [str(program), f"-Xmx{memory}", *with_archive(FAST).split(), *MODULES]
    command += [f"-Djava.io.tmpdir={folder}", *flags, "-cp", class_path(home), *main]
    own = {"SPARK_HOME": str(home), "SPARK_SCALA_VERSION": "2.13", "JAVA_HOME": str(program.resolve().parent.parent)}
    inherited = {name: value for name, value in os.environ.items() if not is_setting(name)}
    with log.open("wb") as output:
        process = subprocess.Popen(
            ending_with_this_process(command),
            stdin=subprocess.PIPE,  # Spark's gateway ends when its input does
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**inherited, **own, **environment},
            cwd=folder,
        )
    return Jvm(name, process, log)
