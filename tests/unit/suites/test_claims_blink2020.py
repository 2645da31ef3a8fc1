"""What blink2020's metrics make of rates and of launches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scaleproof.claims.arithmetic import Published
from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.made_up import Event, events
from scaleproof.claims.suite_metrics import load_models
from tests.short_form import case_from

MODELS = load_models(Path(__file__).resolve().parents[3] / "suites" / "blink2020" / "models" / "__init__.py")
machines, chunks, packings, NONE = MODELS.machines, MODELS.chunks, MODELS.packings, Published()


def test_one_hop_beats_two_binary_trees_by_their_depth_where_latency_is_all() -> None:
    switch = machines.Switch(devices=16, device_gb_per_s=120.0, hop_us=3.4)
    assert machines.switch_latency_gain(switch, NONE) == pytest.approx(4, rel=0.02)
    assert machines.switch_ring_gain(switch, NONE) == pytest.approx(15, rel=0.02)


def test_a_second_channel_helps_with_a_balanced_share_alone() -> None:
    channels = machines.Channels(nvlink_gb_per_s=60.0, pcie_gb_per_s=6.0, megabytes=1000.0)
    assert machines.channels_gain(channels, NONE) == pytest.approx(66 / 60)
    assert machines.channels_gain(channels.model_copy(update={"share": 0.5}), NONE) == pytest.approx(6 / 30)


def test_servers_whose_links_make_no_ring_hold_one_ring_at_pci_express() -> None:
    servers = machines.Servers(allocations=((0, 1, 4), (2, 3, 5, 6, 7)), network_gbit=400.0, pcie_gb_per_s=(6.0,))
    whole = machines.Servers(allocations=((0, 1, 2), (4, 5, 6)), network_gbit=400.0, pcie_gb_per_s=(6.0,))
    assert machines.servers_gain(servers, NONE) > machines.servers_gain(whole, NONE)
    fast, ends = (servers.model_copy(update={"pcie_gb_per_s": rates}) for rates in ((12.0,), (6.0, 12.0)))
    assert machines.servers_gain(ends, NONE) == machines.servers_gain(fast, NONE) < machines.servers_gain(servers, NONE)
    slow = servers.model_copy(update={"network_gbit": 4.0})
    assert machines.servers_gain(slow, NONE) == pytest.approx(7 / 4, rel=0.05), (
        "the network is all: 2 (n - 1) / n over 1"
    )


def trained(**given: object) -> Any:
    known = {
        "workloads": ("vgg16_imagenet",),
        "batch": (32,),
        "tflops": (30.0,),
        "pcie_gb_per_s": (6.0,),
        "hidden": (0.0,),
    }
    return machines.Training(**known | given)


def test_less_of_a_step_is_saved_where_computing_takes_longer() -> None:
    saved, large, slow = (
        machines.step_time_saved(form, NONE).low for form in (trained(), trained(batch=(256,)), trained(tflops=(8.0,)))
    )
    assert 0 < large < saved < 100 and slow < saved


def test_a_saving_has_the_ends_of_all_that_is_not_known() -> None:
    ends = machines.step_time_saved(trained(batch=(32, 256), pcie_gb_per_s=(6.0, 12.0)), NONE)
    assert ends.high == machines.step_time_saved(trained(), NONE).low
    assert ends.low == machines.step_time_saved(trained(batch=(256,), pcie_gb_per_s=(12.0,)), NONE).high < ends.high


def test_where_the_backward_pass_hides_all_messages_nothing_is_saved() -> None:
    hidden = machines.step_time_saved(trained(batch=(4096,), hidden=(1.0,)), NONE)
    assert hidden.high == 0 < machines.step_time_saved(trained(batch=(4096,)), NONE).low


def test_a_gain_up_to_has_the_ends_of_what_is_known_of_machine_and_pci_express() -> None:
    ends = packings.GainedOver(
        machines=("dgx1v_like", "dgx1p_like"), collective="all_reduce", pcie_gb_per_s=(6.0, 12.0)
    )
    found = packings.gain_up_to(ends, NONE)
    alone = [
        packings.gain_largest(packings.Gained(machine=name, collective="all_reduce", pcie_gb_per_s=rate), NONE)
        for name, rate in (("dgx1p_like", 12.0), ("dgx1v_like", 6.0))
    ]
    assert [found.low, found.high] == alone
    assert found.low < found.high


def sent(chunk_kib: int, seconds: float) -> Launch:
    case = case_from(
        {
            "program": "own",
            "entry": "link_collectives",
            "suite": "blink2020",
            "experiment": "links",
            "arm": f"a{chunk_kib}",
            "transport": "tcp",
            "ranks": 5,
            "options": {"operation": "all_reduce", "over": "trees", "chunk_kib": chunk_kib},
        }
    )
    made = events(Event("step", 0.0, seconds))
    return Launch(made.record(case), made.samples(5))


def test_adapted_chunks_are_beside_the_fastest_given_size() -> None:
    block = [sent(16, 2.0), sent(64, 1.0), sent(256, 1.5), sent(0, 1.05)]
    assert chunks.over_best_chunk(block) == pytest.approx(1.05)
    assert chunks.over_best_chunk(block[:3]) is None and chunks.over_best_chunk(block[3:]) is None


def test_wrong_elements_are_the_most_of_any_step_and_rank() -> None:
    case = sent(64, 1.0).record.case
    made = events(
        *(Event("wrong", value=count, step=step, warmup=not step) for step, count in enumerate((0.0, 7.0, 3.0)))
    )
    assert MODELS.sums.wrong_elements(made.record(case), made.samples(5)) == 7
    assert MODELS.sums.wrong_elements(made.record(case), events(Event("step")).samples(5)) is None
