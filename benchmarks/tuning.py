"""The settings that `make bench` tries for each peer before it measures: a grid per peer, with at most the budget that
our own gRPC service had in experiment `tuning` of suite xue2019. Ours run as they are shipped; two get more memory."""

from __future__ import annotations

import math
import os
import statistics
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from benchmarks.arms import PLAIN, RING_OVER_GRPC, SIZES, TENSORFLOW_GRPC, Arm

BUDGET_SETTINGS, BUDGET_LAUNCHES = 8, 6
"""Most settings of a peer for each operation, and launches of each: a test keeps both equal to that experiment."""
TUNED_RANKS = 2
"""Ranks of all targets."""
Sizes = dict[int, float]
"""Seconds per size in bytes, of one launch."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A way to run a peer: variables of the environment, and fields of the case (of TensorFlow's peer: options of its
    program). `operations`: those that it can change."""

    name: str
    environment: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    operations: tuple[str, ...] = ("all_reduce", "transfer")

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Its variables in the environment of this process, which its children inherit."""
        before = {name: os.environ.get(name) for name in self.environment}
        os.environ.update(self.environment)
        try:
            yield
        finally:
            for name, value in before.items():
                os.environ.pop(name, None) if value is None else os.environ.update({name: value})


SHIPPED = Setting("as shipped")


def _mca(name: str, operations: tuple[str, ...] = ("all_reduce", "transfer"), **parameters: object) -> Setting:
    return Setting(name, {f"OMPI_MCA_{key}": str(value) for key, value in parameters.items()}, operations=operations)


def _algorithm(name: str, number: int, segment: int = 0) -> Setting:
    """An all-reduce of Open MPI's component `tuned` by its number, `ompi_info --all` lists them."""
    return _mca(
        name,
        ("all_reduce",),
        coll_tuned_use_dynamic_rules=1,
        coll_tuned_allreduce_algorithm=number,
        coll_tuned_allreduce_algorithm_segmentsize=segment,
    )


def _ucx(name: str, **variables: object) -> Setting:
    return Setting(name, {f"UCX_{key}": str(value) for key, value in variables.items()})


def _case(name: str, **options: object) -> Setting:
    return Setting(name, options={f"transport.{key}": value for key, value in options.items()})


OPEN_MPI = (
    SHIPPED,
    _algorithm("recursive doubling", 3),
    _algorithm("ring", 4),
    _algorithm("ring in segments of 256 KiB", 5, 256 << 10),
    _algorithm("Rabenseifner", 6),
    _mca("fragments of 256 KiB", btl_sm_max_send_size=256 << 10),
    _mca("eager up to 32 KiB", btl_sm_eager_limit=32 << 10, btl_sm_max_send_size=64 << 10),
    _mca("copies in and out, no copy between processes", smsc="^cma"),
)
GRIDS: dict[str, tuple[Setting, ...]] = {
    # Gloo in torch has no choice of algorithm or segment; its devices are sockets and threads of their own.
    "gloo": (
        SHIPPED,
        *(Setting(f"{count} devices", {}, {"transport.devices": count}, ("all_reduce",)) for count in (2, 4)),
    ),
    "mpi": OPEN_MPI,
    "mpich": (
        SHIPPED,
        *(
            Setting(name.replace("_", " "), {"MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM": name}, operations=("all_reduce",))
            for name in ("recursive_doubling", "reduce_scatter_allgather", "recexch", "ring")
        ),
    ),
    "horovod": (SHIPPED, *(_case(f"cycle of {cycle:g} ms", cycle_ms=cycle) for cycle in (0.1, 0.5, 5.0))),
    "horovod-mpi": (
        SHIPPED,
        *(_case(f"cycle of {cycle:g} ms", cycle_ms=cycle) for cycle in (0.1, 0.5)),
        *OPEN_MPI[1:6],
    ),
    "ucx": (
        SHIPPED,
        _ucx("rendezvous from 8 KiB", RNDV_THRESH="8k"),
        _ucx("rendezvous from 256 KiB", RNDV_THRESH="256k"),
        _ucx("never rendezvous", RNDV_THRESH="inf"),
        _ucx("rendezvous by get", RNDV_SCHEME="get_zcopy"),
        _ucx("rendezvous by put", RNDV_SCHEME="put_zcopy"),
        _ucx("segments of 64 KiB", POSIX_SEG_SIZE="64k"),
    ),
    # The first is the piece that our transport tensorflow-grpc sets, the second TensorFlow's default.
    RING_OVER_GRPC: (
        Setting("pieces of 4 MiB", options={"piece_kib": 4096}),
        Setting("pieces of 4 KiB", options={"piece_kib": 4}),
        Setting("pieces of 64 KiB", options={"piece_kib": 64}),
        Setting("pieces of 1 MiB", options={"piece_kib": 1024}),
        Setting("pieces of 4 MiB, 4 channels", options={"piece_kib": 4096, "channels": 4}),
    ),
    TENSORFLOW_GRPC: (
        Setting("1 channel", options={"channels": 1}),
        Setting("2 channels", options={"channels": 2}),
        Setting("4 channels", options={"channels": 4}),
    ),
}
"""By name of the arm; others have nothing to set, or no setting that a user may change. NCCL chooses by itself."""
WINDOW_MIB = 2 * (SIZES[-1] >> 20) + 16
"""Holds both buffers of the largest transfer, and scratch and bounce buffers beside them."""
ROOM: dict[str, Setting] = {
    # The window of 64 MiB that these transports ship with holds no pair of the largest buffers: one would be plain.
    "grpc+shm": _case(f"window of {WINDOW_MIB} MiB", window_mib=WINDOW_MIB),
    "grpc+rdma": _case(f"window of {WINDOW_MIB} MiB", region_mib=2 * WINDOW_MIB),
}
"""The only settings of our own transports, for registered and plain buffers alike: memory, at any number of ranks."""


def grid(arm: Arm) -> tuple[Setting, ...]:
    """The settings to try for an arm, the one in use without tuning first; arms of more ranks than the targets have run
    with that one."""
    shipped = (ROOM.get(arm.name.removesuffix(PLAIN), SHIPPED),)
    settings = tuple(setting for setting in GRIDS.get(arm.name, shipped) if arm.operation in setting.operations)
    return settings if arm.ranks == TUNED_RANKS else settings[:1]


def untuned(arm: Arm) -> bool:
    """Whether a peer that has a grid runs as shipped here: with other ranks, or where no setting concerns the
    operation."""
    return arm.name in GRIDS and len(grid(arm)) == 1


@dataclass(slots=True)
class Trial:
    """One setting of an arm: its launches, or why one failed."""

    setting: Setting
    launches: list[Sizes] = field(default_factory=list)
    why: list[str] = field(default_factory=list)

    def seconds(self, size: int) -> list[float]:
        """One value per launch."""
        return [launch[size] for launch in self.launches if size in launch]


def best(trials: Sequence[Trial], sizes: Sequence[int]) -> list[tuple[Setting, tuple[int, ...]]]:
    """The sizes at which each setting has the smallest median; the first setting where no launch decides. A setting
    with a failed launch is not used."""
    chosen: dict[str, list[int]] = {}
    for size in sizes:
        medians = {trial.setting.name: _median(trial, size) for trial in trials}
        chosen.setdefault(min(medians, key=lambda name: medians[name]), []).append(size)
    settings = {trial.setting.name: trial.setting for trial in trials}
    return [(settings[name], tuple(taken)) for name, taken in chosen.items()]


def _median(trial: Trial, size: int) -> float:
    seconds = trial.seconds(size)
    return statistics.median(seconds) if seconds and not trial.why else math.inf
