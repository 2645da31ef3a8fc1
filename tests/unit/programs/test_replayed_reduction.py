"""Reductions that take as long as a slower node's."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import pytest

from scaleproof.programs.replayed_reduction import LEAST_NS, PacedReduction, reduce_as_slowly
from scaleproof.spec.errors import FieldError
from scaleproof.transports.contract import UFUNCS
from scaleproof.workloads.pace import SECOND, Sleep
from tests.unit.simulate.test_simulator import case_of


class Clock:
    """A pace whose time passes only where it is waited for."""

    def __init__(self) -> None:
        self.moment, self.waits = 0, 0

    def now(self) -> int:
        return self.moment

    def wait_until(self, moment: int) -> None:
        self.moment, self.waits = moment, self.waits + 1


@pytest.fixture
def as_it_was() -> Iterator[None]:
    before = dict(UFUNCS)
    yield
    UFUNCS.update(before)


def test_it_reduces_and_takes_its_time_for_every_byte() -> None:
    clock, total = Clock(), np.ones(1 << 20, np.float32)
    reduction = PacedReduction(np.add, 2.0, clock)
    assert reduction(total, np.full_like(total, 2), out=total) is total and (total == 3).all()
    assert clock.moment == 2 * total.nbytes


def test_short_waits_are_added_up() -> None:
    clock, part = Clock(), np.zeros(256, np.float32)
    reduction = PacedReduction(np.add, 1.0, clock)
    calls = 10 * LEAST_NS // part.nbytes
    for _ in range(calls):
        reduction(part, part, out=part)
    assert clock.waits <= 11 and calls * part.nbytes - LEAST_NS <= clock.moment <= calls * part.nbytes


@pytest.mark.usefixtures("as_it_was")
def test_every_collective_of_the_process_reduces_at_the_rate() -> None:
    reduce_as_slowly(0.1, 2.0, Sleep())
    part, began = np.ones(1 << 16, np.float32), time.monotonic()
    UFUNCS["sum"](part, part, out=part)
    assert time.monotonic() - began >= 2.0 * part.nbytes / 0.1e9 * 0.99 and SECOND == 1e9


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"compute": "none", "compute.reduces": 1.0}, "only compute that is replayed"),
        ({"compute": "replay", "compute.reduces": 1.0, "strategy": "parameter_server"}, "collectives of ours"),
        ({"compute": "replay", "compute.reduces": 1.0, "transport": "gloo", "collective": "native"}, "of ours"),
    ],
)
def test_a_rate_where_nothing_of_ours_reduces_is_refused(fields: dict[str, object], message: str) -> None:
    with pytest.raises((FieldError, ValueError), match=message):
        case_of(**fields)
