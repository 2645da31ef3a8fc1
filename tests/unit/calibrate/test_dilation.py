"""The least dilation and shrink with which a machine can run a case; a case that none makes possible is refused with
advice."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scaleproof.calibrate import needed_dilation as dilation
from scaleproof.calibrate.cluster_capacity import FILE, Capacity, read_capacity
from scaleproof.calibrate.needed_dilation import LOAD, MESSAGES, Offer, choose, concerns, load_of, offer_of, too_much
from scaleproof.cli import main
from scaleproof.record.digest import machine_id
from scaleproof.spec.case import TrainCase
from scaleproof.spec.errors import SpecError
from scaleproof.workloads.case_network import network_of
from scaleproof.workloads.profile import Spread
from scaleproof.workloads.volumes import volume
from tests.short_form import case_from

NOWHERE = Path("no such machine")
"""Without a profile links are taken to be busy all the time."""


def case_of(**fields: Any) -> TrainCase:
    values = {
        "suite": "s",
        "experiment": "e",
        "arm": "a",
        "program": "train",
        "ranks": 8,
        "transport": "tcp",
        "collective": "ring",
        "strategy": "sync",
        "workload": "vgg_a",
        "minibatch": 16,
        "steps": 2,
        "compute": "replay",
        "fabric": "netns",
        "fabric.link_mbit": 10_000.0,
    }
    case = case_from(values | fields)
    assert isinstance(case, TrainCase)
    return case


def capacity(gbytes: float = 1.0, messages: float = 20_000.0) -> Capacity:
    bulk = Spread(median=gbytes * 1e9, n=6)
    rates = {"bulk": bulk, "paced": bulk, "messages": Spread(median=messages, n=6)}
    return Capacity(machine=machine_id(), code="c", measured_at="today", ranks=8, taken="made up", **rates)


def test_a_ring_offers_what_its_formula_says_for_as_long_as_its_links_need() -> None:
    case, ranks = case_of(), 8
    offer, parameter_bytes = offer_of(case, NOWHERE), 4 * network_of(case).parameters
    assert offer.nbytes == pytest.approx(2 * (ranks - 1) * parameter_bytes, rel=1e-4)
    assert offer.messages == 4 * 2 * (ranks - 1) * ranks  # four buckets
    assert offer.link_s == pytest.approx(2 * (ranks - 1) / ranks * parameter_bytes / 1.25e9, rel=1e-3)


def test_parameter_servers_offer_every_tensor_there_and_back() -> None:
    case = case_of(strategy="parameter_server", collective="ring", servers=1)
    offer, network = offer_of(case, NOWHERE), network_of(case)
    assert offer.nbytes == 2 * 7 * 4 * network.parameters and offer.messages == 2 * 7 * len(network.parameter_shapes)
    assert offer.link_s > 7 * 4 * network.parameters / 1.25e9  # all bytes cross the server's only link


@pytest.mark.parametrize("groups", [1, 2, 8])
def test_activations_of_divided_layers_are_offered_too(groups: int) -> None:
    case = case_of(strategy="hybrid", minibatch=64, groups=groups)
    volumes = volume(network_of(case), 8, 64, groups)
    assert offer_of(case, NOWHERE).nbytes == pytest.approx(8 * (volumes.sent + volumes.replicated), rel=2e-3)


def test_strategies_at_their_own_pace_offer_what_all_their_steps_move() -> None:
    steps, ranks, fields = 5, 8, {"steps": 4, "warmup": 1}
    parameter_bytes = 4 * network_of(case_of()).parameters
    gossip = offer_of(case_of(strategy="gossip", **fields), NOWHERE)
    assert gossip.messages == 2 * ranks * steps  # asked, and answered with the parameters
    assert gossip.nbytes == pytest.approx(ranks * steps * parameter_bytes, rel=1e-2)
    server = offer_of(case_of(strategy="server", minibatch=14, **fields), NOWHERE)
    assert server.nbytes == pytest.approx(2 * (ranks - 1) * steps * parameter_bytes, rel=1e-2)
    assert server.link_s == pytest.approx((ranks - 1) * steps * parameter_bytes / 1.25e9, rel=1e-2)


def test_a_step_without_an_exchange_does_not_stand_for_all() -> None:
    every, fourth = (
        offer_of(case_of(strategy={"name": "local_sgd", "tau": tau}, steps=8, warmup=0), NOWHERE) for tau in (1, 4)
    )
    assert every.messages == 4 * fourth.messages == 8 * 2 * 7 * 8
    assert every.nbytes == pytest.approx(4 * fourth.nbytes)
    assert every.link_s == pytest.approx(4 * fourth.link_s)


@pytest.mark.parametrize("slower", [1, 4])
def test_the_least_sufficient_dilation_and_shrink_are_chosen(slower: int) -> None:
    case, offer = case_of(), offer_of(case_of(), NOWHERE)
    machine = capacity(gbytes=1.0 / slower, messages=20_000 / slower)
    knobs = choose(case, offer, machine)
    assert knobs.carried and knobs.load <= LOAD and knobs.messages <= MESSAGES
    if knobs.dilation > 1:
        assert all(not load_of(offer, machine, knobs.dilation / 2, 2.0**power).carried for power in range(11))
    if knobs.shrink > 1:
        assert not load_of(offer, machine, knobs.dilation, knobs.shrink / 2).carried


def test_memory_asks_for_a_shrink_too(monkeypatch: pytest.MonkeyPatch) -> None:
    free = choose(case_of(), offer_of(case_of(), NOWHERE), capacity(gbytes=1e6, messages=1e9))
    assert (free.dilation, free.shrink) == (1, 1)
    monkeypatch.setattr(dilation, "memory_mib", lambda: 4000)
    assert choose(case_of(), offer_of(case_of(), NOWHERE), capacity(gbytes=1e6, messages=1e9)).shrink == 8


def test_a_case_that_no_dilation_or_shrink_can_carry_is_refused_with_advice() -> None:
    with pytest.raises(
        SpecError,
        match=r"even with dilation 64 and shrink \d+ the ranks need .*; take fewer ranks, slower links, or "
        r"fabric: simulated",
    ):
        choose(case_of(), offer_of(case_of(), NOWHERE), capacity(messages=10.0))


def test_links_without_a_rate_are_refused() -> None:
    with pytest.raises(SpecError, match="give link_mbit or a cluster"):
        offer_of(case_of(link_mbit=None), NOWHERE)


def test_a_case_beyond_the_machines_capacity_is_not_runnable_here() -> None:
    heavy = case_of()
    why, advice = too_much(heavy, capacity(gbytes=0.1), NOWHERE) or ("", "")
    assert why.startswith("its ranks need ") and "`scaleproof dilate s e`" in advice
    assert (
        too_much(heavy, None, NOWHERE) is None
        and too_much(case_of(fabric="simulated"), capacity(gbytes=0.1), NOWHERE) is None
    )
    assert too_much(case_of(shrink=1024, dilation=8), capacity(gbytes=0.1), NOWHERE) is None
    # More than the comfortable load, but not more than the capacity.
    slow_links = replace_rates(capacity(gbytes=20.0), 0.1e9)
    assert (
        too_much(heavy, slow_links, NOWHERE) is None and not load_of(offer_of(heavy, NOWHERE), slow_links, 1, 1).carried
    )


def test_a_short_exchange_in_a_long_step_may_exceed_the_capacity() -> None:
    # Compute of a slow node takes seconds and an exchange over fast links milliseconds.
    case = case_of(link_mbit=100_000.0, profile="xeon_e5_2698v3_x2", efficiency=0.1, minibatch=512)
    offer, machine = offer_of(case, NOWHERE), capacity(gbytes=20.0, messages=1e9)
    assert offer.step_s > 20 * offer.link_s > 0
    load = load_of(offer, machine, 1, 1)
    assert load.load > 1 and load.carried and too_much(case, machine, NOWHERE) is None
    tired = capacity(gbytes=0.01, messages=1e9)
    assert not load_of(offer, tired, 1, 1).carried and too_much(case, tired, NOWHERE) is not None


def test_only_replayed_cases_on_built_links_are_concerned() -> None:
    assert concerns(case_of()) and not concerns(case_of(fabric="simulated")) and not concerns(case_of(compute="none"))


def test_a_case_without_traffic_needs_no_capacity() -> None:
    assert load_of(Offer(0.0, 0.0, 0.0, 0.0), capacity(), 1, 1).carried


def test_the_command_prints_the_dilation_and_shrink_of_each_case(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "results" / "machines" / machine_id() / FILE
    path.parent.mkdir(parents=True)
    path.write_text(replace_rates(capacity(), 2e9).model_dump_json())
    assert read_capacity(tmp_path / "results") is not None
    folder = tmp_path / "mine"
    folder.mkdir()
    base = (
        "program: train, transport: tcp, collective: ring, strategy: sync, workload: vgg_a, minibatch: 16, "
        "steps: 2, compute: replay, fabric: {name: netns, cluster: ethernet_10g}"
    )
    (folder / "suite.yaml").write_text(
        "suite: mine\ntitle: t\nexperiments:\n  e:\n    summary: s\n"
        f"    base: {{{base}, ranks: 8}}\n"
        "    arms: {heavy: {}, light: {dilation: 8, shrink: 16}}\n"
        "    sizes: {ci: {launches: 1, matrix: [{arms: [heavy, light]}]}}\n"
    )
    assert main(["dilate", str(folder), "--size", "ci", "--results", str(tmp_path / "results")]) == 1
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if " heavy " in line or " light " in line]
    assert [line[line.index("vgg_a") + 1 : line.index("vgg_a") + 7] for line in lines] == [
        ["ethernet_10g", "1", "1", "100%", "503%", "3.0%"],
        ["ethernet_10g", "8", "16", "100%", "4%", "0.4%"],
    ]


def replace_rates(capacity: Capacity, nbytes: float) -> Capacity:
    return capacity.model_copy(update={"paced": Spread(median=nbytes, n=6)})


def test_shares_add_up() -> None:
    offer = Offer(nbytes=1e9, messages=1000.0, link_s=1.0, step_s=1.0)
    load = load_of(offer, capacity(), 2, 4)
    assert (load.messages, load.load) == pytest.approx((1000 / 20_000 / 2, 1 / 4 / 2 + 1000 / 20_000 / 2))
    assert not replace(load, messages=0.06).carried and not replace(load, load=0.6).carried
