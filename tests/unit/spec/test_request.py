"""The resources that an experiment requests from a cluster, from suite.yaml and from its largest case."""

from __future__ import annotations

from pathlib import Path

import pytest

from scaleproof.spec.errors import SpecError
from scaleproof.spec.suite import Suite, load_suite

TEXT = """\
suite: asking
title: A suite
experiments:
  first:
    summary: One
    {more}
    base: {{program: collective, operation: all_reduce, sizes: [1 KiB], transport: tcp, collective: ring,
      threads_per_rank: 2}}
    arms: {{tcp: {{}}, emulated: {{fabric: netns}}}}
    sizes:
      ci: {{launches: 1, matrix: [{{arms: [tcp], sweep: {{ranks: [2, 6]}}}}, {{arms: [emulated], set: {{ranks: 8}}}}]}}
      smoke: {{launches: 6, {sized} matrix: [{{arms: [emulated], set: {{ranks: 8}}}}]}}
"""


def suite(folder: Path, more: str = "", sized: str = "") -> Suite:
    (folder / "asking").mkdir()
    (folder / "asking" / "suite.yaml").write_text(TEXT.format(more=more, sized=sized))
    return load_suite(folder / "asking")


def test_a_node_for_each_rank_of_the_largest_case_that_takes_the_network_as_it_is(tmp_path):
    sizes = suite(tmp_path).experiment("first").sizes
    assert [
        (size.request.nodes, size.request.tasks_per_node, size.request.cpus_per_task) for size in sizes.values()
    ] == [(6, 1, 2), (1, 1, 2)]
    assert sizes["ci"].request.exclusive and sizes["ci"].request.constraint is None and sizes["ci"].request.gpus == 0


def test_fewer_nodes_take_more_ranks_each(tmp_path):
    request = (
        suite(tmp_path, "allocation: {nodes: 4, gpus: 2, constraint: haswell, exclusive: false}")
        .experiment("first")
        .size("ci")
        .request
    )
    assert (request.nodes, request.tasks_per_node, request.tasks) == (4, 2, 8)
    assert (request.gpus, request.constraint, request.exclusive) == (2, "haswell", False)


def test_a_size_goes_over_its_experiment(tmp_path):
    sizes = (
        suite(tmp_path, "allocation: {nodes: 4, time_limit_min: 9}", "allocation: {nodes: 2},")
        .experiment("first")
        .sizes
    )
    assert [(size.request.nodes, size.request.time_limit_min) for size in sizes.values()] == [(4, 9), (2, 9)]


def test_the_time_limit_has_room_for_a_launch_that_hangs_and_no_job_asks_for_more_than_a_day(tmp_path):
    request = suite(tmp_path, "deadline_s: 1200").experiment("first").size("ci").request
    assert 25 < request.time_limit_min < 40
    (tmp_path / "more").mkdir()
    assert (
        suite(tmp_path / "more", "deadline_s: 200000").experiment("first").size("ci").request.time_limit_min == 24 * 60
    )


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("allocation: {node: 4}", "experiments.first.allocation.node: unknown key; did you mean 'nodes'?"),
        ("allocation: {nodes: 0}", "experiments.first.allocation.nodes: "),
        ("allocation: {constraint: ''}", "experiments.first.allocation.constraint: "),
        ("allocation: 4", "experiments.first.allocation: "),
    ],
)
def test_a_mistake_is_one_line_with_its_place(tmp_path, more, message):
    with pytest.raises(SpecError) as wrong:
        suite(tmp_path, more)
    assert f"suite.yaml:6: {message}" in str(wrong.value) and "\n" not in str(wrong.value)


def test_the_request_is_no_part_of_a_case(tmp_path):
    (tmp_path / "other").mkdir()
    ids = [
        {case.case_id for case in suite(folder, more).experiment("first").size("ci").cases}
        for folder, more in ((tmp_path, ""), (tmp_path / "other", "allocation: {nodes: 2}"))
    ]
    assert ids[0] == ids[1]
