"""Of which machine and code launches of one plan are used."""

from __future__ import annotations

from scaleproof.record.versions import Ran, last_version


def used(*versions: tuple[str, str, str, str]) -> list[int]:
    """Places of those that are used, of (fabric, machine, code, status) in the order in which they began."""
    launches = [Ran(*version, started_at=f"2026-01-01T00:00:{second:02}") for second, version in enumerate(versions)]
    return [launches.index(launch) for launch in last_version(launches, lambda launch: launch)]


def test_the_code_and_machine_that_ran_last_are_used() -> None:
    assert used(
        ("host", "a", "old", "ok"),
        ("host", "a", "new", "ok"),
        ("host", "b", "new", "ok"),
        ("host", "b", "new", "failed"),
    ) == [2, 3]


def test_failed_launches_of_newer_code_do_not_change_the_version_in_use() -> None:
    assert used(("host", "a", "old", "ok"), ("host", "a", "new", "failed")) == [0]


def test_cases_on_nodes_of_an_allocation_stand_beside_networks_that_one_of_them_makes() -> None:
    assert used(
        ("host", "nodes", "c", "ok"),
        ("netns", "one", "c", "ok"),
        ("host", "nodes", "c", "ok"),
        ("guests", "one", "c", "ok"),
    ) == [0, 1, 2, 3]


def test_networks_of_older_code_do_not_stand_beside_launches_of_newer() -> None:
    assert used(("netns", "a", "old", "ok"), ("host", "a", "new", "ok")) == [1]


def test_predictions_follow_from_other_code() -> None:
    assert used(("simulated", "a", "p", "ok"), ("host", "a", "q", "ok")) == [0, 1]
