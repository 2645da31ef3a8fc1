"""Writes the archive of classes (class_archive.py) before a launch's clock starts, in a process of its own: whether the
archive was there before changes nothing that a launch measures."""

from __future__ import annotations

import secrets
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
from suite_programs.class_archive import NewArchive, tidy
from suite_programs.cluster import start_gateway
from suite_programs.jvm import archive
from suite_programs.map_reduce import FORMS, MapReduce
from suite_programs.rbm import Task, train
from suite_programs.session import spark_context

from scaleproof.rank.process_lifetime import ending_with_this_process

WRITE_S = 100.0
"""The longest that writing may take."""
_MAIN = (
    "import sys; from pathlib import Path; from scaleproof.programs.own import load_entry; "
    "load_entry(Path(sys.argv[1]), 'archive_writer').write(sys.argv[2], Path(sys.argv[3]))"
)


def ensure(address: str, folder: Path) -> bool:
    """Whether the archive is there; writes it where it is missing. The writer's log goes to `folder`."""
    found = archive()
    tidy(found)
    if not found.exists():
        command = [sys.executable, "-c", _MAIN, str(Path(__file__).parent), address, str(folder)]
        with (folder / "archive-writer.log").open("wb") as log, suppress(subprocess.TimeoutExpired):
            subprocess.run(
                ending_with_this_process(command), stdout=log, stderr=subprocess.STDOUT, timeout=WRITE_S, check=False
            )
    return found.exists()


def write(address: str, folder: Path) -> None:
    """Runs a small job of each form in one process of Spark, which leaves the classes that it has loaded."""
    new = NewArchive(archive())
    images, task, token = np.zeros((4, 6)), Task((6, 2), 1, 0), secrets.token_hex(16)
    driver = start_gateway(address, folder, [new.flag])
    try:
        with spark_context(address, token, folder, "local[1]", 0, driver) as spark:
            for job in FORMS:
                train(task, len(images), MapReduce(spark, job, task, images, 2, 2).total)
        new.settle(driver[0].end(WRITE_S))
    finally:
        driver[0].kill()
        new.settle(False)
