"""The plan: each repetition of each case once, interleaved blocks, and the same order whenever it is resumed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from scaleproof.spec.case import TrainCase
from scaleproof.spec.plan import plan
from scaleproof.spec.suite import Suite, load_suite

SUITE = """\
suite: {name}
title: t
experiments:
  e: &e
    summary: s
    base: {{program: collective, operation: all_reduce}}
    arms:
      ring: {{transport: tcp, collective: ring}}
      tree: {{transport: tcp, collective: tree}}
      gloo: {{transport: gloo}}
    sizes:
      small:
        launches: 7
        matrix: [{{arms: [ring, tree, gloo], sweep: {{ranks: [2, 3], sizes: [[8], [64]]}}}}]
      full:
        launches: 2
        matrix: [{{arms: [ring, tree, gloo], sweep: {{ranks: [2, 3], sizes: [[8], [64]]}}}}]
  f: *e
"""


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    """Two equal experiments of twelve cases."""
    return _suite(tmp_path, "x")


def _suite(folder: Path, name: str) -> Suite:
    (folder / name).mkdir()
    (folder / name / "suite.yaml").write_text(SUITE.format(name=name))
    return load_suite(folder / name)


def test_every_repetition_of_every_case_is_planned_once(suite: Suite) -> None:
    launches = plan(suite, "e", "small")
    assert Counter((launch.case.case_id, launch.plan_index) for launch in launches).most_common(1)[0][1] == 1
    assert len(launches) == 2 * 7 * 12 and len({launch.case.case_id for launch in launches}) == 12
    assert [launch.order for launch in launches] == list(range(168))


def test_size_small_has_two_campaigns_whose_repetitions_and_seeds_are_their_own(suite: Suite) -> None:
    launches = plan(suite, "e", "small")
    assert [{launch.plan_index for launch in launches if launch.campaign == campaign} for campaign in (0, 1, 2)] == [
        set(range(7)),
        set(range(7, 14)),
        set(),
    ]
    assert len({launch.seed for launch in launches}) == 14
    assert {launch.campaign for launch in plan(suite, "e", "full")} == {0}


def test_campaigns_are_shuffled_differently(suite: Suite) -> None:
    first, second = (
        [launch.case.case_id for launch in plan(suite, "e", "small") if launch.campaign == campaign]
        for campaign in (0, 1)
    )
    assert sorted(first) == sorted(second) and first != second


def test_block_k_holds_repetition_k_of_every_case_in_an_order_of_its_own(suite: Suite) -> None:
    launches = plan(suite, "e", "small")
    blocks = [launches[start : start + 12] for start in range(0, 84, 12)]
    assert [{launch.plan_index for launch in block} for block in blocks] == [{index} for index in range(7)]
    orders = [tuple(launch.case.case_id for launch in block) for block in blocks]
    assert len(set(orders)) == 7 and len({frozenset(order) for order in orders}) == 1


def test_the_order_is_the_same_whenever_it_is_asked_for_and_differs_between_sizes_and_experiments(suite: Suite) -> None:
    assert plan(suite, "e", "small") == plan(suite, "e", "small")
    arms = {
        (name, size): [launch.case.arm for launch in plan(suite, name, size)][:24]
        for name in ("e", "f")
        for size in ("small", "full")
    }
    assert len({tuple(order) for order in arms.values()}) == 4


def test_arms_are_paired_on_equal_seeds_and_repetitions_are_not(suite: Suite) -> None:
    seeds = {
        index: {launch.seed for launch in plan(suite, "e", "small") if launch.plan_index == index} for index in range(7)
    }
    assert all(len(of_index) == 1 for of_index in seeds.values()) and len(set.union(*seeds.values())) == 7
    assert all(0 <= launch.seed < 2**31 for launch in plan(suite, "e", "small"))


def test_seeds_depend_on_suite_and_experiment_and_not_on_the_size(suite: Suite, tmp_path: Path) -> None:
    first = {name: plan(suite, name, "small")[0].seed for name in ("e", "f")}
    assert first["e"] != first["f"] and first["e"] != plan(_suite(tmp_path, "y"), "e", "small")[0].seed
    assert plan(suite, "e", "full")[0].seed == first["e"]


def test_a_later_field_goes_over_an_earlier_one(tmp_path: Path) -> None:
    """base < size.set < arm < matrix.set < sweep."""
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "suite.yaml").write_text("""\
suite: p
title: t
experiments:
  e:
    summary: s
    base: {program: collective, sizes: [1 KiB], transport: gloo, iterations: 1, warmup: 1, ranks: 1, interface: base,
      threads_per_rank: 1}
    arms: {a: {warmup: 3, ranks: 3, interface: arm, threads_per_rank: 3}}
    sizes:
      ci:
        launches: 1
        set: {iterations: 2, warmup: 2, ranks: 2, interface: size, threads_per_rank: 2}
        matrix: [{arms: [a], set: {interface: matrix, ranks: 4}, sweep: {ranks: [5], label: [{threads_per_rank: 6}]}}]
""")
    case = plan(load_suite(tmp_path / "p"), "e", "ci")[0].case
    assert not isinstance(case, TrainCase)
    assert (case.iterations, case.warmup, case.interface, case.ranks, case.threads_per_rank, case.sizes) == (
        2,
        3,
        "matrix",
        5,
        6,
        (1024,),
    )
