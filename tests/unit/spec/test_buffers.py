"""The field `buffers`: for transports with memory of their own, and only where something reads it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from scaleproof.compare.case_groups import title
from scaleproof.report.data import Run
from scaleproof.report.groups import arm
from scaleproof.report.run import _facts
from scaleproof.spec import registry
from scaleproof.transports._buffers import memory_of
from tests.short_form import ring_case, train_case
from tests.unit.claims.claims_samples import record

TRAINING = {"workload": "cd_dnn", "transport": "shm", "collective": "ring", "buffers": "plain", "ranks": 2}


@pytest.mark.parametrize("transport", ["shm", "rdma", "grpc+shm", "grpc+rdma"])
def test_a_transport_with_memory_of_its_own_has_two_ways(transport: str) -> None:
    fabric: dict[str, Any] = {"fabric": "guests", "nodes": 2} if "rdma" in transport else {}
    registered, plain = (ring_case(transport, buffers=way, **fabric) for way in ("registered", "plain"))
    assert registered.case_id == ring_case(transport, **fabric).case_id != plain.case_id


def test_other_transports_have_plain_buffers_only_and_the_message_names_those_that_have_two() -> None:
    own = registry.with_trait("transport", "own_memory")
    for name in registry.names("transport"):
        plugin = registry.get("transport", name)
        if name in own or not plugin.point_to_point:
            continue
        with pytest.raises(ValueError, match="has plain buffers only; leave it out, or take one of .*'shm'") as refused:
            ring_case(name, buffers="plain", launcher=plugin.launcher)
        assert f"transport {name!r}" in str(refused.value)


def test_a_strategy_that_chooses_its_buffers_itself_takes_no_word_about_them() -> None:
    assert train_case(strategy="sync", **TRAINING).buffers == "plain"
    with pytest.raises(ValueError, match="strategy 'parameter_server' chooses its buffers itself"):
        train_case(strategy="parameter_server", **TRAINING)
    with pytest.raises(ValueError, match="transport None has plain buffers only"):
        train_case(workload="cd_dnn", buffers="plain")


def test_buffers_come_from_the_transport_or_from_numpy() -> None:
    class Owner:
        @staticmethod
        def allocate(nbytes: int) -> np.ndarray:
            return np.full(nbytes, 7, np.uint8)

    owner: Any = Owner()
    assert (memory_of("registered", owner)(3) == 7).all()
    plain = memory_of("plain", owner)(100)
    assert plain.nbytes == 100 and plain.flags.owndata


def test_pages_and_comparisons_say_which_buffers_are_plain() -> None:
    registered, plain = ring_case("shm"), ring_case("shm", buffers="plain")
    assert title(plain).endswith("shm ring, plain buffers, 2 ranks") and "plain" not in title(registered)
    names = [arm(Run({}, record(case.written()), None)) for case in (registered, plain)]  # type: ignore[arg-type]
    assert names == ["a", "a (plain buffers)"]


def test_the_page_of_a_launch_says_which_way_plain_buffers_took() -> None:
    made = record(ring_case("shm", buffers="plain").written())
    way = {"way": "shared pieces", "refused": "rank 1: process_vm_readv of rank 0: Operation not permitted"}
    for status in made.ranks:
        status.facts["plain_buffers"] = way
    assert _facts(made) == {"plain_buffers": way}
