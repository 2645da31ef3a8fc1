"""A machine's profile: which floor a size gets, and what new measurements do to earlier ones."""

from __future__ import annotations

import pytest

from scaleproof.record.machine import Floor
from tests.noise_floors import COLLECTIVE, floor, profile_of

KIB = 1 << 10
OTHER = COLLECTIVE.model_copy(update={"transport": "shm", "way": "memory"})


def of_code(code: str, share: float, nbytes: int | None = None) -> Floor:
    return floor("algbw", nbytes=nbytes, share=share).model_copy(update={"code": code})


@pytest.mark.parametrize(
    ("nbytes", "share"),
    [(KIB, 0.1), (256, 0.1), (255, None), (4, None), (4 * KIB, 0.1), (8 * KIB, None), (KIB**2, 0.2)],
)
def test_a_floor_counts_for_sizes_up_to_four_times_as_large_or_small(nbytes: int, share: float | None) -> None:
    known = profile_of(floor("algbw", nbytes=KIB, share=0.1), floor("algbw", nbytes=KIB**2, share=0.2))
    found = known.floor("algbw", COLLECTIVE, nbytes)
    assert (found.share if found else None) == share


@pytest.mark.parametrize(("launches", "share"), [(6, 0.44), (24, 0.2), (96, 1.2**0.5 - 1), (2, 0.44)])
def test_arms_of_more_launches_have_a_smaller_floor_by_the_root_of_their_number(launches: int, share: float) -> None:
    assert floor("algbw", nbytes=KIB, share=0.44).of(launches) == pytest.approx(share)


def test_a_floor_of_another_transport_does_not_count() -> None:
    known = profile_of(floor("algbw", OTHER, KIB))
    assert known.floor("algbw", COLLECTIVE, KIB) is None and known.floor("algbw", OTHER, KIB) is not None


@pytest.mark.parametrize(("code", "share", "counts"), [("d", 0.1, 0.2), ("d", 0.3, 0.3), ("e", 0.1, 0.1)])
def test_the_noisier_of_two_floors_counts_unless_the_code_changed(code: str, share: float, counts: float) -> None:
    known = profile_of(of_code("d", 0.2)).with_floors([of_code(code, share)], ["new"])
    assert [each.share for each in known.floors] == [counts] and known.runs == ("new",)


def test_a_new_calibration_keeps_what_the_same_code_measured_for_suites() -> None:
    earlier = profile_of(of_code("d", 0.2, KIB), of_code("d", 0.3, KIB**2), of_code("older", 0.4, 4))
    again = profile_of(of_code("d", 0.1, KIB)).keeping(earlier)
    assert {each.nbytes: each.share for each in again.floors} == {KIB: 0.1, KIB**2: 0.3}
