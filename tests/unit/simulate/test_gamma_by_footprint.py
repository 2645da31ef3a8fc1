"""Gamma where the caches hold what ranks reduce, and where they do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from scaleproof.record.digest import machine_id
from scaleproof.simulate.alpha_beta_fit import Segment
from scaleproof.simulate.case_costs import cost_model
from scaleproof.simulate.cost_file import GammaCost, Parameter
from scaleproof.simulate.cost_model import MessageCosts
from scaleproof.simulate.simulated_sweeps import sweep
from scaleproof.spec.cluster import cluster_of
from scaleproof.workloads.case_network import network_of
from tests.short_form import ring_case
from tests.unit.simulate.test_predict import fitted, line, stored
from tests.unit.simulate.test_simulator import case_of

IN_CACHE, BEYOND = 1e-10, 4e-10


def sure(value: float) -> Parameter:
    return Parameter(value=value, low=value * 0.9, high=value * 1.1)


@pytest.mark.parametrize(("ranks", "shrink", "gamma"), [(2, 2.0, IN_CACHE), (2, 1.0, BEYOND), (4, 2.0, BEYOND)])
def test_a_training_has_the_gamma_of_all_that_its_ranks_reduce_in_a_step(
    ranks: int, shrink: float, gamma: float, tmp_path: Path
) -> None:
    case = case_of(**{"ranks": ranks, "shrink": shrink, "fabric.costs": "fitted"})
    transport = fitted("tcp", "host", line((None, 1e-5, 1e-9)), IN_CACHE)
    [reduce] = transport.all_reduces
    assert reduce.rounds is not None
    upto = (
        network_of(case).parameters * 2
    )  # half of the gradients, and so all of them for both ranks that it was fitted with
    gammas = (
        GammaCost(nbytes=upto, s_per_byte=sure(IN_CACHE)),
        GammaCost(nbytes=upto + 1, s_per_byte=sure(BEYOND)),
    )
    rounds = reduce.rounds.model_copy(update={"gammas": gammas})
    stored(tmp_path, transport.model_copy(update={"all_reduces": (reduce.model_copy(update={"rounds": rounds}),)}))
    assert cost_model(case, tmp_path, machine_id()).central().gamma == gamma


def test_each_size_of_a_collective_has_the_gamma_of_its_own_arrays() -> None:
    costs = MessageCosts((Segment(None, 0.0, 0.0),), 0.0, gammas=((4096, IN_CACHE), (8192, BEYOND)))
    case = ring_case(ranks=2, fabric="simulated", link_mbit=1e9, sizes=[1024, 65536], iterations=1, warmup=0)
    small, large = (float((span.end - span.start).max()) for span in sweep(case, cluster_of(case), costs).spans)
    assert small == pytest.approx(512 * IN_CACHE, rel=0.1) and large == pytest.approx(32768 * BEYOND, rel=0.1)
