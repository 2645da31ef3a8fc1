"""Kinds of launches: what noise floors belong to."""

from __future__ import annotations

from typing import Any

import pytest

from scaleproof.spec.launch_kind import kind_of, shares_cores
from tests.short_form import case_from

TRAIN: dict[str, Any] = {
    "suite": "s", "experiment": "e", "arm": "a", "program": "train", "ranks": 2, "transport": "tcp",
    "collective": "ring", "strategy": "sync", "workload": "cd_dnn", "minibatch": 8, "steps": 2,
}  # fmt: skip

NATIVE = {"collective": "native"}


def kind(**fields: Any) -> str:
    return str(kind_of(case_from({**TRAIN, **fields})))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "train, real compute, 2 ranks over loopback"),
        ({"transport": "shm"}, "train, real compute, 2 ranks over memory"),
        (
            {"transport": "mpi", "collective": "native", "launcher": "mpirun"},
            "train, real compute, 2 ranks over memory",
        ),
        ({"compute": "none"}, "train, none compute, 2 ranks over loopback"),
        ({"compute": "replay", "fabric": "netns"}, "train, replayed compute, 2 ranks over namespaces"),
        ({"interface": "eth0"}, "train, real compute, 2 ranks over network"),
        ({"ranks": 1}, "train, real compute, one rank"),
    ],
)
def test_the_kind_says_program_compute_way_and_ranks(fields: dict[str, Any], words: str) -> None:
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
    ],
)
def test_cores_are_shared_where_communication_has_none_of_its_own(
    fields: dict[str, Any], cores: int, shared: bool
) -> None:
    assert shares_cores(case_from({**TRAIN, **fields}), cores) is shared
