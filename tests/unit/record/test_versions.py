"""The machine and code version whose launches of a plan are used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from scaleproof.record.versions import Ran, last_version

Launch = tuple[str, str, str, str]
"""Fabric, machine, code, status."""
OLD = {"rank": "1", "tcp": "1", "ring": "1"}
"""Files of a launch before an edit to `tree`, which it does not use."""


def used(*launches: Launch) -> list[int]:
    """Indices of the launches that are used, in the order in which they began; their records name no files."""
    return chosen([("case", *launch) for launch in launches], {})


def chosen(launches: Sequence[tuple[str, str, str, str, str]], files: Mapping[str, Mapping[str, str]]) -> list[int]:
    """The same of launches with a case. `files`: what each code consists of."""
    ran = [Ran(*launch, started_at=f"2026-01-01T00:00:{second:02}") for second, launch in enumerate(launches)]
    return last_version(range(len(ran)), lambda index: ran[index], lambda index: files.get(ran[index].code, {}))


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


def test_launches_that_did_not_use_the_edited_file_stand_beside_those_that_ran_again() -> None:
    launches = [
        ("ring", "host", "a", "ring code", "ok"),
        ("tree", "host", "a", "tree before", "ok"),
        ("tree", "host", "a", "tree after", "ok"),
    ]
    tree = {"rank": "1", "tcp": "1", "tree": "1"}
    files = {"ring code": OLD, "tree before": tree, "tree after": {**tree, "tree": "2"}}
    assert chosen(launches, files) == [0, 2]


def test_launches_that_used_the_edited_file_are_left_out_until_they_ran_again() -> None:
    launches = [("ring", "host", "a", "before", "ok"), ("tree", "host", "a", "after", "ok")]
    assert chosen(launches, {"before": OLD, "after": {"rank": "1", "tcp": "2", "tree": "1"}}) == [1]


def test_of_one_case_only_the_newest_code_is_used() -> None:
    launches = [("ring", "host", "a", "before", "ok"), ("ring", "host", "a", "after", "ok")]
    assert chosen(launches, {"before": OLD, "after": {**OLD, "imported since": "1"}}) == [1]


def test_launches_that_name_no_files_never_stand_beside_others() -> None:
    launches = [("ring", "host", "a", "named", "ok"), ("tree", "host", "a", "unnamed", "ok")]
    assert chosen(launches, {"named": OLD}) == [1]
    assert chosen(launches[::-1], {"named": OLD}) == [1]
