"""Launches whose compute is replayed: no framework on any rank, gradients when the profile says, emulated time, sixteen
nodes on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from scaleproof.core.record_schema import Record
from scaleproof.launch.supervisor import run_plan
from scaleproof.record.digest import machine_id
from scaleproof.record.store import Store
from scaleproof.spec import registry
from scaleproof.spec.case import TrainCase
from scaleproof.spec.straggler_law import straggler_law
from scaleproof.workloads.jitter_model import drawn_from
from scaleproof.workloads.networks import Network
from scaleproof.workloads.profile import LayerTimes, Profile, Spread, write
from scaleproof.workloads.replay_schedule import backward_events
from tests.integration.launches import assert_nothing_left, launches
from tests.integration.netns import need_netns
from tests.short_form import case_from

FORWARD_S, WEIGHT_S, BACKWARD_S, UPDATE_S = 4e-3, 3e-3, 6e-3, 5e-3
"""Of every layer."""
GIB = 1 << 30
OTHERS = "1*xeon_e5_2666v3_x2@2.5e-6"
"""A quarter of the efficiency of the nodes beside it."""


def case_of(arm: str, **fields: Any) -> TrainCase:
    values = {
        "suite": "tests",
        "experiment": "replay",
        "arm": arm,
        "program": "train",
        "ranks": 2,
        "transport": "tcp",
        "collective": "ring",
        "minibatch": 8,
        "strategy": "sync_overlap",
        "workload": "dnn_digits",
        "steps": 4,
        "warmup": 1,
        "compute": "replay",
        "strategy.bucket_mib": 0.01,
    }
    case = case_from(values | fields)
    assert isinstance(case, TrainCase)
    return case


def keep_profile(results: Path, batch: int, scale: float = 1.0) -> Profile:
    """As if it had been measured."""
    network: Network = registry.load("workload", "dnn_digits")(None, 1.0)
    forward, weight, backward, update = (
        Spread(median=seconds * scale) for seconds in (FORWARD_S, WEIGHT_S, BACKWARD_S, UPDATE_S)
    )
    layers = [
        LayerTimes(name=layer.name, mac=layer.mac, forward_s=forward, weight_s=weight, backward_s=backward)
        for layer in network.layers
    ]
    profile = Profile(
        workload="dnn_digits",
        batch=batch,
        framework="torch",
        threads=1,
        node=machine_id(),
        taken="made up",
        layers=tuple(layers),
        update_s=update,
    )
    write(profile, results / "machines" / machine_id())
    return profile


def run(results: Path, *cases: TrainCase, **options: Any) -> list[Record]:
    outcome = run_plan(launches(list(cases)), results, size="ci", **{"deadline_s": 100.0, **options})
    assert_nothing_left(results, outcome.launches)
    return [Store(results).load(launch)[0] for launch in outcome.launches]


def lengths(samples: pd.DataFrame, event: str) -> pd.Series:
    rows = samples[(samples["event"] == event) & ~samples["warmup"]]
    return (rows["end_ns"] - rows["start_ns"]) / 1e9


def assert_asleep(record: Record, profile: Profile, samples: pd.DataFrame) -> None:
    """Sleeps never end early, however busy the machine is; the slack above is that of busy cores."""
    for event, seconds in (
        ("forward", profile.forward_s),
        ("backward", profile.backward_s),
        ("update", profile.update_s.median),
    ):
        assert seconds * 0.99 <= lengths(samples, event).median() <= seconds + 0.25, event
    passes = 2 * record.case.steps  # type: ignore[union-attr]
    assert [status.facts["late"]["passes"] for status in record.ranks] == [passes] * record.case.ranks


def test_a_replayed_launch_is_emulated_loads_no_framework_and_keeps_its_profile(tmp_path: Path) -> None:
    profile = keep_profile(tmp_path, batch=4)
    (record,) = run(tmp_path, case_of("host"))
    store = Store(tmp_path)
    assert (record.status, record.evidence, record.oversubscribed) == ("ok", "emulated", False)
    assert_asleep(record, profile, store.samples(record).to_pandas())
    everything = [
        *record.environment["libraries"],
        *(name for status in record.ranks for name in (*status.facts["packages"], *status.facts["libraries"])),
    ]
    assert not [name for name in everything if "torch" in name or "tensorflow" in name]
    assert Profile.model_validate_json((store.folder(record) / "profile.json").read_bytes()) == profile
    assert record.environment["replay"]["taken"] == "made up" and set(record.environment["load"]["crowding"]) == {
        "idle",
        "queued",
        "late",
        "full",
        "quota",
    }
    assert not (store.samples(record).to_pandas()["event"] == "loss").any()
    again = run_plan(launches([record.case]), tmp_path, size="ci", deadline_s=60.0)
    keep_profile(tmp_path, batch=4, scale=2.0)
    anew = run_plan(launches([record.case]), tmp_path, size="ci", deadline_s=60.0)
    assert (again.skipped, again.completed, anew.skipped, anew.completed) == (1, 0, 0, 1)


def test_a_long_sleep_is_no_stall(tmp_path: Path) -> None:
    keep_profile(tmp_path, batch=4, scale=100.0)
    (record,) = run(tmp_path, case_of("long", steps=1, warmup=0), stall_s=0.2)
    assert record.status == "ok", record.failure


def test_ranks_sleep_for_as_long_as_their_seed_draws(tmp_path: Path) -> None:
    profile, law = keep_profile(tmp_path, batch=4), "slow:4,0.5"
    (record,) = run(tmp_path, case_of("uneven", steps=6, compute={"name": "replay", "jitter": law}))
    assert record.status == "ok", record.failure
    assert record.environment["replay"]["jitter"] == "slow:4.0,0.5"
    drawn = drawn_from(straggler_law(law))
    assert drawn is not None
    factors = [drawn.factors(2, record.seed, step) for step in range(7)]
    assert {1.0, 4.0} == set(np.ravel(factors))
    samples = Store(tmp_path).samples(record).to_pandas()
    for row in samples[samples["event"] == "forward"].itertuples():
        # A sleep never ends early; how late is the machine's matter.
        assert row.end_ns - row.start_ns >= 0.99e9 * profile.forward_s * factors[row.step][row.rank]
    assert [status.facts["late"]["planned_ns"] for status in record.ranks] == [
        pytest.approx(1e9 * (profile.forward_s + profile.backward_s) * sum(factor[rank] for factor in factors[1:]))
        for rank in range(2)
    ]


def test_gradients_leave_while_the_backward_pass_sleeps_on(tmp_path: Path) -> None:
    profile, network = keep_profile(tmp_path, batch=4), registry.load("workload", "dnn_digits")(None, 1.0)
    (record,) = run(tmp_path, case_of("overlap", bucket_mib=1e-6))
    samples = Store(tmp_path).samples(record).to_pandas()
    mine = samples[(samples["rank"] == 0) & (samples["step"] == 2)]
    started, passed = (mine[mine["event"] == event].iloc[0] for event in ("forward", "backward"))
    ready = mine[mine["event"] == "queue"]["start_ns"].sort_values().tolist()
    due = [
        event.due_ns + profile.forward_s * 1e9
        for event in backward_events(network, profile, 1.0, {})
        for _ in event.parameters
    ]
    # A call for every parameter, never too early; how late is the machine's matter.
    assert len(ready) == len(due) and all(
        moment >= started["start_ns"] + due_ns for moment, due_ns in zip(ready, due, strict=True)
    )
    assert ready[-1] < passed["end_ns"]


@pytest.mark.parametrize("transport", ["tcp", "grpc"])
def test_dilated_and_shrunken_launches_are_read_in_emulated_time(transport: str, tmp_path: Path) -> None:
    need_netns()
    profile = keep_profile(tmp_path, batch=4)
    slow = case_of("slow", fabric="netns", link_mbit=1000, link_delay_ms=0.2, dilation=3, shrink=4, transport=transport)
    (record,) = run(tmp_path, slow)
    store = Store(tmp_path)
    assert record.status == "ok", record.failure
    assert record.evidence_text.startswith("emulated, dilation 3, shrink 4")
    assert [(link["mbit"], link["delay_ms"]) for link in record.transport["fabric"]["links"]] == [
        pytest.approx((1000 / 3 / 4, 0.1 * 3))
    ] * 2
    assert_asleep(record, profile, store.samples(record).to_pandas())
    own = pd.read_parquet(store.folder(record) / "samples.parquet")
    assert lengths(own, "forward").min() >= 3 * profile.forward_s * 0.99
    read = store.samples(record).to_pandas()
    assert (read["nbytes"] == 4 * own["nbytes"]).all() and own["nbytes"].max() > 0


def test_ranks_on_nodes_of_another_type_sleep_as_much_longer(tmp_path: Path) -> None:
    need_netns()
    slow = {"compute.profile": "xeon_e5_2666v3_x2", "compute.efficiency": 1e-5}
    mixed = case_of("mixed", fabric="netns", ranks=3, minibatch=12, **slow, **{"compute.others": OTHERS})
    (record,) = run(tmp_path, mixed)
    assert record.status == "ok", record.failure
    assert record.environment["replay"]["relative_times"] == pytest.approx([1, 1, 4])
    profile, samples = record.environment["replay"], Store(tmp_path).samples(record).to_pandas()
    for rank, factor in enumerate((1, 1, 4)):
        forward = lengths(samples[samples["rank"] == rank], "forward").median()
        assert factor * profile["forward_s"] * 0.99 <= forward <= factor * profile["forward_s"] * 2, rank


def test_sixteen_nodes_of_das2016_run_here_with_ranks_that_are_light(tmp_path: Path) -> None:
    need_netns()
    fields = {
        "workload": "vgg_a",
        "minibatch": 256,
        "fabric.cluster": "ethernet_10g",
        "compute.profile": "xeon_e5_2666v3_x2",
        "compute.efficiency": 1.0,
        "strategy.bucket_mib": 25,
    }
    (record,) = run(tmp_path, case_of("sixteen", fabric="netns", ranks=16, steps=2, dilation=2, shrink=256, **fields))
    assert record.status == "ok", record.failure
    samples = Store(tmp_path).samples(record).to_pandas()
    calls = samples[(samples["event"] == "communication") & (samples["step"] == 1) & (samples["rank"] == 0)]
    assert calls["nbytes"].sum() == pytest.approx(4 * 132_863_336, rel=1e-3)
    private = [status.facts["private_memory_mib"] for status in record.ranks]
    # What a rank adds to the process that all were forked from; its gradients are 2 MiB here.
    assert max(private) * 64 * (1 << 20) < 24 * GIB / 4
