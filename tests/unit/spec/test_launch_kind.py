"""Kinds of launches: what noise floors belong to."""

from __future__ import annotations

from typing import Any

import pytest

from scaleproof.spec.launch_kind import kind_of, kind_on, shares_cores
from tests.short_form import case_from

TRAIN: dict[str, Any] = {
    "suite": "s", "experiment": "e", "arm": "a", "program": "train", "ranks": 2, "transport": "tcp",
    "collective": "ring", "strategy": "sync", "workload": "cd_dnn", "minibatch": 8, "steps": 2,
}  # fmt: skip

NATIVE = {"collective": "native"}
OVERLAP = {"strategy": "sync_overlap"}


def kind(**fields: Any) -> str:
    return str(kind_of(case_from({**TRAIN, **fields})))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "train, real compute, 2 ranks over tcp (loopback)"),
        ({"transport": "shm"}, "train, real compute, 2 ranks over shm (memory)"),
        (
            {"transport": "mpi", "collective": "native", "launcher": "mpirun"},
            "train, real compute, 2 ranks over mpi (memory)",
        ),
        ({"compute": "none"}, "train, none compute, 2 ranks over tcp (loopback)"),
        ({"compute": "replay", "fabric": "netns"}, "train, replayed compute, 2 ranks over namespaces"),
        ({"interface": "eth0"}, "train, real compute, 2 ranks over tcp (network)"),
        ({"ranks": 1}, "train, real compute, one rank"),
    ],
)
def test_the_kind_says_program_compute_transport_way_and_ranks(fields: dict[str, Any], words: str) -> None:
    assert kind(**fields) == words


def test_ranks_that_exchange_nothing_are_not_one_rank() -> None:
    alone = {"strategy": "local_only", "transport": None, "collective": "native"}
    assert kind(**alone) == "train, real compute, 2 ranks without exchange"


def test_predictions_have_no_kind() -> None:
    assert kind_of(case_from({**TRAIN, "fabric": "simulated"})) is None


@pytest.mark.parametrize(
    ("fields", "cores", "shared"),
    [
        ({**NATIVE, "transport": "gloo"}, 2, True),  # moves bytes in a thread of its own
        ({**NATIVE, "transport": "gloo"}, 4, False),
        ({}, 2, False),  # the caller moves them
        ({"compute": "replay"}, 2, False),  # ranks sleep
        ({"ranks": 1}, 1, False),  # nothing to exchange
        ({**NATIVE, "transport": "gloo"}, 1, False),  # oversubscribed, which is another mark
        ({"strategy": {"name": "parameter_server", "servers": 0}}, 2, True),
        (OVERLAP, 2, True),  # the strategy calls from a thread of its own
        ({**OVERLAP, "transport": "shm"}, 2, True),
        (OVERLAP, 4, False),
        ({"strategy": {"name": "sync_overlap", "channels": 2}}, 4, True),  # a thread for each channel
        ({"strategy": {"name": "sync_overlap", "channels": 2}}, 6, False),
        ({**OVERLAP, **NATIVE, "transport": "gloo"}, 4, False),  # its thread waits for the transport's
        ({"strategy": {"name": "sync_overlap", "communication": "main"}}, 2, False),
        ({**OVERLAP, "compute": "replay"}, 2, False),
        ({**OVERLAP, "compute": {"name": "replay", "burns": True}}, 2, True),
        ({"strategy": "distributed_update"}, 2, True),
        ({"strategy": "hybrid"}, 2, True),
    ],
)
def test_cores_are_shared_where_communication_has_none_of_its_own(
    fields: dict[str, Any], cores: int, shared: bool
) -> None:
    assert shares_cores(case_from({**TRAIN, **fields}), cores) is shared


def test_launches_that_share_cores_are_of_another_kind_than_those_that_do_not() -> None:
    beside, after = (kind_on(case_from({**TRAIN, "strategy": name}), 2) for name in ("sync_overlap", "sync"))
    assert str(beside) == f"{after}, shared cores"


def test_launches_with_more_threads_than_cores_have_no_kind_unless_they_sleep() -> None:
    assert kind_on(case_from(TRAIN), 1) is None and kind_on(case_from(TRAIN), 2) is not None
    assert kind_on(case_from({**TRAIN, "compute": "replay"}), 1) is not None
    assert kind_on(case_from({**TRAIN, "compute": {"name": "replay", "burns": True}}), 1) is None
