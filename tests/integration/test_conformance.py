"""One suite for all transports and collectives: every operation, type and size against NumPy, with 2 to 5 ranks (and a
lone one), on real processes."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from scaleproof.core.board import Board
from scaleproof.core.context import RankContext
from scaleproof.launch.launchers import mpich
from scaleproof.paths import IMPORT_ROOT
from scaleproof.rank.unsupervised_ranks import run_ranks
from scaleproof.spec import registry
from scaleproof.spec.case import TrainCase
from scaleproof.spec.common_case import NATIVE
from scaleproof.transports.mpich import ON_ONE_MACHINE, home
from tests.integration.conformance import process_set
from tests.integration.conformance.process_set import CHANNELS, LEAVING, LIFTED, LIFTED_RANKS, MESSAGES
from tests.short_form import case_from

ROOT = Path(__file__).parents[2]
RANKS = (1, 2, 3, 4, 5)
SET_S = 100
LOSS_S = 5.0
START_S = 60.0
"""At most, for mpirun and its ranks on busy cores: only a hang takes longer."""
FRAMEWORKS = {
    "horovod": "torch",
    "horovod/tensorflow": "tensorflow",
    "gloo": "torch",
    "tensorflow-grpc": "tensorflow",
    "tensorflow-mirrored": "tensorflow",
}
"""Imported once here, before the ranks are forked."""
VARIANTS = [
    *(name for name in registry.names("transport") if not registry.get("transport", name).devices),
    "horovod/tensorflow",
]
"""Transports, with a framework behind the slash where the binding follows it. Those that need a device: test_rdma.py
runs this suite in guests."""
COMPOSED = ("horovod-mpi", "grpc+mpi", "grpc+shm", "tensorflow-grpc", "tensorflow-mirrored")
"""Made of parts that run with all numbers of ranks, or slow to start: a few are enough."""
STARTED = ("mpirun", "mpich")
"""Launchers whose program starts the ranks."""
SHARED_CORES = {"MPIR_CVAR_CH4_PROGRESS_THROTTLE": "1", "MPIR_CVAR_CH4_PROGRESS_THROTTLE_NO_PROGRESS_COUNT": "64"}
"""Makes MPICH's ranks give up their core after that many polls in vain, as Open MPI's do: 5 ranks poll on few cores."""
RACES = {("horovod/tensorflow", "a_peer_leaves")}
"""Where the library may never return from a call (docs/transports/horovod.md; 1 of 335 launches): one more try."""
LISTENING = ("tcp", "ucx", "grpc")
"""Transports of ours that accept connections."""


def entry_of(variant: str) -> registry.TransportPlugin:
    return registry.get("transport", variant.partition("/")[0])


def ids() -> Iterator[tuple[str, str, int]]:
    """One per transport, collective (or other subject) and number of ranks; a process set serves all subjects of its
    transport and number."""
    for variant in VARIANTS:
        lifted = entry_of(variant).point_to_point
        messages = entry_of(variant).sends
        subjects = [*(registry.algorithms() if lifted else [NATIVE]), *([MESSAGES] if messages else []), LEAVING]
        subjects += [CHANNELS] if entry_of(variant).channels else []
        for ranks in RANKS[:3] if variant in COMPOSED else RANKS:
            yield from ((variant, subject, ranks) for subject in subjects)
            if messages and not lifted and ranks <= LIFTED_RANKS:
                yield variant, LIFTED, ranks


@pytest.mark.parametrize(("variant", "subject", "ranks"), list(ids()))
def test_conforms(variant: str, subject: str, ranks: int) -> None:
    results, problems = everything(variant, ranks)
    mine = [result for result in results if result["collective"] == subject]
    failed = [f"{result['name']}: {result['detail']}" for result in mine if not result["passed"]]
    assert not failed and not problems, "\n".join(failed[:20] + problems)
    assert len({result["name"].rpartition("rank ")[2] for result in mine}) == ranks, (
        f"not every rank of {variant} reported on {subject}"
    )


@pytest.mark.parametrize("fault", ["a_peer_dies", "a_peer_leaves"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_lost_peer_is_an_error_within_seconds(variant: str, fault: str) -> None:
    require(variant)
    with folder() as results:
        start = time.monotonic()
        if entry_of(variant).launcher in STARTED:
            process = mpirun(f"process_set.{fault}", case_of(variant, 3), results, SET_S)
            assert process.returncode != 0 and time.monotonic() - start < START_S + LOSS_S, process.stderr
            return
        body = partial(getattr(process_set, fault), results=results)
        errors = run_ranks(case_of(variant, 3), body, SET_S)
        if any(errors[:2]) and (variant, fault) in RACES:
            errors = run_ranks(case_of(variant, 3), body, SET_S)
        assert errors[:2] == ["", ""]
        for rank in range(2):
            outcome, seconds = json.loads((results / f"{rank}.loss").read_text())
            assert outcome == "PeerLost" and seconds < LOSS_S, (
                f"{variant}: rank {rank} saw {outcome} after {seconds:.1f} s"
            )


@pytest.mark.parametrize("variant", ["horovod", "horovod-mpi"])
def test_a_peer_that_is_only_slow_is_waited_for(variant: str) -> None:
    """These look whether Horovod's threads still run; none of them may end in a launch that goes on."""
    require(variant)
    with folder() as results:
        if entry_of(variant).launcher in STARTED:
            process = mpirun("process_set.a_peer_is_slow", case_of(variant, 3), results, SET_S)
            assert process.returncode == 0, process.stderr
        else:
            body = partial(process_set.a_peer_is_slow, results=results)
            assert run_ranks(case_of(variant, 3), body, SET_S) == ["", "", ""]
        for rank in range(3):
            seconds, total = json.loads((results / f"{rank}.slow").read_text())
            assert seconds > process_set.SLOW_S - 1 and total == 3.0  # ranks do not start at the same moment


@pytest.mark.parametrize("transport", LISTENING)
def test_who_does_not_know_the_token_is_not_let_in(transport: str) -> None:
    """The stranger gets an error; the others may go on waiting for the peer that they expect."""
    require(transport)

    def body(context: RankContext) -> None:
        if context.rank == 1:
            context.token = "0" * len(context.token)
        registry.load("transport", transport).connect(context)

    waiting, refused = run_ranks(case_of(transport, 2), body, 4)
    assert waiting, "rank 0 let a peer in that does not know the token"
    assert "TransportError" in refused or "PeerLost" in refused, refused


@lru_cache
def everything(variant: str, ranks: int) -> tuple[list[dict[str, Any]], list[str]]:
    """Results of all ranks, and what went wrong beside them."""
    require(variant)
    case, children = case_of(variant, ranks), psutil.Process().children(recursive=True)
    with folder() as results:
        if entry_of(variant).launcher in STARTED:
            process = mpirun("process_set.check_everything", case, results, SET_S)
            problems = [process.stderr] if process.returncode else []
            problems += [f"left {path}" for path in results.rglob("sm_segment*")]
        else:
            problems = [
                error
                for error in run_ranks(case, partial(process_set.check_everything, results=results), SET_S)
                if error
            ]
        results_of_checks = [
            json.loads(line) for path in sorted(results.glob("*.jsonl")) for line in path.read_text().splitlines()
        ]
        problems += [
            f"left {name}"
            for path in results.glob("*.mapped")
            for name in json.loads(path.read_text())
            if Path(name).exists()
        ]
    problems += [f"left {child}" for child in psutil.Process().children(recursive=True) if child not in children]
    if problems and results_of_checks:
        problems.append(f"the last check that was done: {results_of_checks[-1]['name']}")
    return results_of_checks, problems


def require(variant: str) -> None:
    """Skip where the library is not installed; import its framework before any rank is forked."""
    availability = registry.availability("transport", variant.partition("/")[0])
    if not availability.available:
        pytest.skip(f"{availability.why}: {availability.advice}")
    if variant in FRAMEWORKS:
        importlib.import_module(FRAMEWORKS[variant])


def case_of(variant: str, ranks: int) -> Any:
    transport, _, framework = variant.partition("/")
    entry = registry.get("transport", transport)
    common = {"suite": "test", "experiment": "conformance", "arm": variant, "ranks": ranks, "transport": transport}
    common |= {"collective": "ring" if entry.point_to_point else NATIVE, "launcher": entry.launcher}
    if framework:
        return TrainCase(
            **common, framework=framework, strategy="sync", workload="dnn_digits", minibatch=ranks, steps=1
        )
    return case_from({**common, "program": "collective", "sizes": [8]})


@contextmanager
def folder() -> Iterator[Path]:
    """Scratch in memory, as a launch has it."""
    path = Path(tempfile.mkdtemp(prefix="scaleproof-test-", dir="/dev/shm"))
    try:
        yield path
    finally:
        shutil.rmtree(path)


def mpirun(function: str, case: Any, results: Path, timeout_s: float) -> subprocess.CompletedProcess[str]:
    """Open MPI with its files inside the scratch folder, or MPICH, and no listening ranks; see docs/transports/mpi.md
    and mpich.md."""
    (results / "rendezvous").mkdir()
    Board(results / "board", case.ranks).close()
    words, arguments = (
        ["-m", "tests.integration.conformance.under_mpirun"],
        [function, case.model_dump_json(), str(results)],
    )
    if case.launcher == "mpich":
        command = mpich.started(mpich.options(case.ranks), [str(home() / "bin" / "python"), *words, *arguments])
        return subprocess.run(
            command,
            cwd=ROOT,
            # its environment has the libraries that ranks need, not the package
            env={**os.environ, **ON_ONE_MACHINE, **SHARED_CORES, "PYTHONPATH": str(IMPORT_ROOT)},
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
    command = [
        str(Path(sys.executable).parent / "mpirun"),
        "-n",
        str(case.ranks),
        "--oversubscribe",
        "--bind-to",
        "none",
        "--mca",
        "pml",
        "ob1",
        "--mca",
        "btl",
        "self,sm",
    ]
    command += ["--mca", "btl_sm_backing_directory", str(results), sys.executable, *words]
    environment = os.environ | {
        "TMPDIR": str(results),
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    }
    arguments = [function, case.model_dump_json(), str(results)]
    return subprocess.run(
        [*command, *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
