"""The OSU micro-benchmarks as tools.build_osu builds them: what they do with the options that suite crosscheck gives.
SCALEPROOF_OSU names a clone of their source."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from scaleproof.launch.launchers.mpirun import options
from tools.build_osu.programs import build
from tools.build_osu.source import REPOSITORY, taken

SOURCE = os.environ.get("SCALEPROOF_OSU", "")
BIN = Path(sys.executable).parent
ROW = re.compile(r"^(\d+) +\d+\.\d{4}$", re.MULTILINE)
COUNTER = """\
#include <mpi.h>
#include <stdio.h>
static int rank = -1, sent = 0, longest = 0;
int MPI_Isend(const void *at, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request) {
    sent++;
    longest = count > longest ? count : longest;
    return PMPI_Isend(at, count, type, to, tag, comm, request);
}
int MPI_Finalize(void) {
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (!rank) printf("isends %d longest %d\\n", sent, longest);
    return PMPI_Finalize();
}
"""

pytestmark = pytest.mark.skipif(not SOURCE, reason=f"SCALEPROOF_OSU names no clone of {REPOSITORY}")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("osu")
    build(taken(Path(SOURCE)), folder)
    (folder / "counter.c").write_text(COUNTER)
    subprocess.run([BIN / "mpicc", "-shared", "-fPIC", folder / "counter.c", "-o", folder / "counter.so"], check=True)
    return folder


def printed(built: Path, *command: str) -> str:
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    preloaded = ["-x", f"LD_PRELOAD={built / 'counter.so'}"]
    started = [str(BIN / "mpirun"), *options(2, Path("/dev/shm")), *preloaded, str(built / command[0]), *command[1:]]
    environment = {**os.environ, **root}
    return subprocess.run(started, capture_output=True, text=True, check=True, timeout=60, env=environment).stdout


def test_osu_latency_measures_the_asked_sizes_with_four_decimals(built: Path) -> None:
    output = printed(built, "osu_latency", "-m", "8:8", "-i", "20", "-x", "2")
    assert "# OSU MPI Latency Test v5.5" in output
    assert ROW.findall(output) == ["8"]
    output = printed(built, "osu_latency", "-m", "8:64", "-i", "20", "-x", "2")
    assert ROW.findall(output) == ["8", "16", "32", "64"]


@pytest.mark.parametrize("window", [16, 64])
def test_osu_bw_sends_the_asked_window_of_the_asked_size(built: Path, window: int) -> None:
    output = printed(built, "osu_bw", "-m", "1024:1024", "-W", str(window), "-i", "5", "-x", "1")
    assert ROW.findall(output) == ["1024"]
    assert f"isends {(5 + 1) * window} longest 1024" in output
