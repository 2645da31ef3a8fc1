"""`scaleproof show` has a launch's rate beside what its machine was measured to reach."""

from __future__ import annotations

import pytest

from scaleproof.calibrate.attained_rate import rate_lines
from tests.unit.calibrate.test_attainable import MIB, NETNS, PROFILE, TRANSFER, launch, on_links
from tests.unit.claims.claims_samples import TRAIN, record, samples, step

CASE = {**TRANSFER, "sizes": [1000, 2000]}
ROUNDS = samples((0, "transfer", 0, 0, 0.002, 1000), (0, "transfer", 0, 1, 1.01, 2000))
"""Round trips of 2 and of 10 microseconds."""


@pytest.mark.parametrize(
    ("path", "profile", "expected"),
    [
        ("shared memory", PROFILE, "5 % of the bound measured on machine m: 20 [18, 22] GB/s (memory_copy)"),
        ("shared memory", None, "no bound: memory_copy was not measured on machine m (docs/calibration.md)"),
        (None, PROFILE, "no bound: the path of its bytes is not recorded (docs/calibration.md)"),
    ],
)
def test_the_highest_rate_of_a_sweep_stands_beside_the_bound_of_its_path(
    path: str | None, profile: object, expected: str
) -> None:
    lines = rate_lines(launch(CASE, path), ROUNDS, profile)  # type: ignore[arg-type]
    assert lines == [f"transfer_bandwidth: 1 GB/s at 1000 B, the highest of 2 sizes; {expected}"]


def test_a_rate_over_links_stands_beside_what_was_set_on_them() -> None:
    over_links = on_links(CASE | NETNS | {"sizes": [MIB]}, mbit=200)
    line = rate_lines(over_links, samples((0, "transfer", 0, 0, 100, MIB)), None)[0]
    assert "% of the bound set on its links: 0.02447 GB/s (link)" in line


def test_a_training_has_its_throughput() -> None:
    events = [(rank, name, -1, at, at) for rank in (0, 1) for name, at in (("start", 0), ("end", 200))]
    rows = samples(*events, *step(0, 0, 0), *step(0, 1, 100), *step(1, 0, 0), *step(1, 1, 100))
    assert rate_lines(record(TRAIN), rows, None)[0].startswith("throughput: 80 samples/s; no bound")


def test_a_launch_that_timed_nothing_has_no_rate() -> None:
    assert rate_lines(record(TRAIN), samples((0, "start", -1, 0, 0)), None) == []
