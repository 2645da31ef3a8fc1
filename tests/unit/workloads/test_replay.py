"""Replayed compute: the schedule of sleeps, the modules in memory, and the launches that count."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from scaleproof.claims.finished_launch import times_count
from scaleproof.claims.metrics_train import step_s, throughput
from scaleproof.launch.finish.core_saturation import Crowding, crowding, saturation
from scaleproof.launch.finish.disturbances import link_warnings
from scaleproof.launch.progress import Lines
from scaleproof.launch.supervisor import run_plan
from scaleproof.launch.watch.idle_time import IdleTrace, Reading
from scaleproof.record.machine_load import HZ
from scaleproof.record.store import Store
from scaleproof.simulate.program import exchange_plan
from scaleproof.spec import registry
from scaleproof.spec.case import TrainCase
from scaleproof.spec.emulated import shrunk
from scaleproof.spec.errors import FieldError
from scaleproof.spec.plan import PlannedLaunch
from scaleproof.strategies.local_only import LocalOnly
from scaleproof.workloads import pace as paces
from scaleproof.workloads.networks import Network
from scaleproof.workloads.profile import LayerTimes, Profile, Spread
from scaleproof.workloads.replay import NoData, ReplayModel
from scaleproof.workloads.replay_schedule import PassEvent, backward_events
from tests.short_form import case_from
from tests.unit.claims.claims_samples import record, samples, step

MS = 1_000_000
CASE: dict[str, Any] = {
    "suite": "s",
    "experiment": "e",
    "arm": "a",
    "program": "train",
    "ranks": 2,
    "transport": "tcp",
    "collective": "ring",
    "strategy": "sync_overlap",
    "workload": "dnn_digits",
    "minibatch": 8,
    "steps": 2,
    "compute": "replay",
}


def network() -> Network:
    made: Network = registry.load("workload", "dnn_digits")(None, 1.0)
    return made


def profile() -> Profile:
    """Layer n (from 1): n ms forward, n ms until the gradients of its weights, 10 ms for that of its input; the update
    takes 5 ms."""
    ms = [Spread(median=number / 1e3) for number in range(len(network().layers) + 1)]
    layers = [
        LayerTimes(
            name=layer.name,
            mac=layer.mac,
            forward_s=ms[number],
            weight_s=ms[number],
            backward_s=Spread(median=(number + 10) / 1e3),
        )
        for number, layer in enumerate(network().layers, 1)
    ]
    return Profile(
        workload="dnn_digits",
        batch=4,
        framework="torch",
        threads=1,
        node="m",
        taken="made up",
        layers=tuple(layers),
        update_s=Spread(median=5e-3),
    )


class Clock:
    """A fake clock: time passes only by sleeping, and every sleep ends late."""

    def __init__(self, late_ns: int) -> None:
        self.ns, self.late_ns = 0, late_ns

    def sleep(self, seconds: float) -> None:
        self.ns += round(seconds * 1e9) + self.late_ns


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    replaced = Clock(late_ns=200_000)
    monkeypatch.setattr(paces, "now", lambda: replaced.ns)
    monkeypatch.setattr(paces.time, "sleep", replaced.sleep)
    return replaced


def asleep(dilation: float = 1.0, shrink: float = 1.0) -> tuple[ReplayModel, list[tuple[int, int]]]:
    """A model, and the list of announced parameters with their times."""
    model, announced = ReplayModel(network(), profile(), dilation, shrink), list[tuple[int, int]]()
    model.bind([], 1.0, lambda index: announced.append((index, paces.now())))
    return model, announced


def births(dilation: float) -> list[PassEvent]:
    """Time at which the gradients of each layer are final."""
    return [act for act in backward_events(network(), profile(), dilation, {}) if act.parameters]


def test_gradients_are_ready_last_layer_first_once_their_weights_are_done() -> None:
    last, before = reversed(profile().layers[-2:])
    assert [index for act in births(1.0) for index in act.parameters] == list(
        reversed(range(len(network().parameter_shapes)))
    )
    assert births(1.0)[0].due_ns == round(last.weight_s.median * 1e9)
    assert births(1.0)[1].due_ns == round((last.backward_s.median + before.weight_s.median) * 1e9)


@pytest.mark.parametrize("dilation", [1.0, 4.0])
def test_a_late_awakening_delays_what_it_stands_for_and_nothing_after_it(dilation: float, clock: Clock) -> None:
    model, announced = asleep(dilation)
    model.forward(NoData.test)
    forward_ns = round(profile().forward_s * dilation * 1e9)
    assert clock.ns == forward_ns + clock.late_ns
    model.backward()
    expected = [forward_ns + act.due_ns for act in births(dilation) for _ in act.parameters]
    assert [moment - due for (_, moment), due in zip(announced, expected, strict=True)] == [clock.late_ns] * len(
        expected
    )
    assert clock.ns == round((profile().forward_s + profile().backward_s) * dilation * 1e9) + clock.late_ns
    assert (model.late.passes, model.late.late_ns, model.late.worst_ns) == (2, 2 * clock.late_ns, clock.late_ns)


def test_an_update_of_some_parameters_takes_their_share(clock: Clock) -> None:
    model, sizes = asleep()[0], asleep()[0].sizes
    model.update([0])
    assert clock.ns == pytest.approx(5 * MS * sizes[0] / sum(sizes) + clock.late_ns, abs=1)
    model.update()
    assert clock.ns == pytest.approx(5 * MS * (1 + sizes[0] / sum(sizes)) + 2 * clock.late_ns, abs=1)


def test_shrunk_tensors_keep_an_element_and_empty_ones_stay_empty() -> None:
    assert [shrunk(size, 16) for size in (0, 1, 15, 16, 1600)] == [0, 1, 1, 1, 100]
    full, less = (asleep(shrink=shrink)[0].sizes for shrink in (1.0, 8.0))
    assert less == [max(1, round(size / 8)) for size in full]


@pytest.mark.parametrize("transport", ["tcp", "shm", "mpi", "grpc", "rdma"])
def test_ranks_that_replay_have_no_framework_in_memory(transport: str) -> None:
    case = case_from({**CASE, "transport": transport, "launcher": "mpirun" if transport == "mpi" else "local"})
    script = (
        "import json, sys; from scaleproof.rank.parent import preload; from scaleproof.spec.case import "
        "parse_case; preload(parse_case(json.loads(sys.argv[1])));"
        "print(sorted(set(sys.modules) & {'torch', 'tensorflow', 'keras'}),"
        "sorted({line.split()[-1] for line in open('/proc/self/maps') if 'torch' in line or 'tensorflow' in line}))"
    )
    run = subprocess.run(
        [sys.executable, "-c", script, json.dumps(case.model_dump(mode="json"))],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert run.stdout == "[] []\n"


def test_without_a_profile_the_case_is_not_runnable_here_and_the_command_is_named(tmp_path: Path) -> None:
    outcome = run_plan(
        [PlannedLaunch(case_from(CASE), 0, 1, 0)], tmp_path, size="ci", deadline_s=5.0, progress=Lines("test")
    )
    launch = next(Store(tmp_path).records())
    assert outcome.not_runnable == 1 and launch.failure is not None
    assert (
        "`scaleproof profile --workload dnn_digits --batch 4`" in launch.failure.advice
        and "\n" not in launch.failure.advice
    )


@pytest.mark.parametrize(
    ("fields", "field", "why"),
    [
        ({"dilation": 2}, "dilation", "fabric 'host' does not slow its links"),
        ({"shrink": 2}, "shrink", "fabric 'host' does not slow its links"),
        ({"fabric": "netns", "shrink": 2, "compute": "real"}, "shrink", "is for replayed compute"),
        ({"compute": {"name": "real", "burns": True}}, "burns", "only compute that is replayed burns a core"),
        ({"fabric": "netns", "dilation": 2, "compute.burns": True}, "dilation", "no slower than the real one"),
    ],
)
def test_emulated_time_that_nothing_would_slow_is_refused(fields: dict[str, Any], field: str, why: str) -> None:
    with pytest.raises(ValidationError, match=why) as raised:
        case_from({**CASE, **fields})
    error = raised.value.errors()[0]["ctx"]["error"]
    assert isinstance(error, FieldError) and error.field == field


PEAK: dict[str, Any] = {"compute.profile": "xeon_e5_2666v3_x2", "compute.efficiency": 0.6, "fabric": "simulated"}


@pytest.mark.parametrize(
    ("fields", "field", "why"),
    [
        ({**PEAK, "dilation": 8}, "dilation", "stated costs are of hardware at full speed"),
        ({**PEAK, "shrink": 64}, "shrink", "stated costs are of hardware at full speed"),
        (
            {"fabric": "simulated", "fabric.costs": "stated", "dilation": 8},
            "dilation",
            "stated costs are of hardware at full speed",
        ),
    ],
)
def test_replays_that_a_prediction_cannot_follow_are_refused(fields: dict[str, Any], field: str, why: str) -> None:
    with pytest.raises(ValueError, match=why) as raised:
        case_from({**CASE, **fields})
    assert raised.value.errors()[0]["ctx"]["error"].field == field  # type: ignore[attr-defined]


def test_a_slowed_prediction_takes_fitted_costs_or_no_messages() -> None:
    assert case_from({**CASE, **PEAK, "fabric.costs": "fitted", "dilation": 8, "shrink": 64}).dilation == 8
    alone = {"transport": None, "collective": "native", "strategy": "local_only"}
    assert case_from({**CASE, **PEAK, **alone, "dilation": 8}).dilation == 8


@pytest.mark.parametrize("fields", [{"fabric": "host"}, {"fabric": "netns", "transport": "tcp"}])
def test_the_times_of_a_suites_own_program_are_not_divided(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="own program is not slowed by it"):
        case_from(
            {
                "suite": "s",
                "experiment": "e",
                "arm": "a",
                "program": "own",
                "entry": "mine",
                "ranks": 2,
                "dilation": 2,
                **fields,
            }
        )


def test_a_shrunken_collective_keeps_whole_elements() -> None:
    case = {**CASE, "program": "collective", "fabric": "netns", "shrink": 16}
    for name in ("strategy", "workload", "minibatch", "steps", "compute"):
        del case[name]
    for size in (16, 32, 4096 + 16):
        with pytest.raises(ValueError, match=f"size {size} does not divide by 16 into whole elements of 4 B"):
            case_from({**case, "sizes": [4096, size]})
    assert case_from({**case, "sizes": [0, 64, 4096]}).shrink == 16


def test_sizes_that_do_not_divide_by_the_shrink_are_refused() -> None:
    sizes = {
        "suite": "s",
        "experiment": "e",
        "arm": "a",
        "program": "transfer",
        "transport": "tcp",
        "fabric": "netns",
        "sizes": [4096, 1000],
        "shrink": 16,
    }
    with pytest.raises(ValueError, match="size 1000 does not divide by 16"):
        case_from(sizes)


def pace(ticks: int, idle: int, queued_ns: int | None, at_ns: int) -> dict[str, Any]:
    return {"ticks": ticks, "idle_ticks": idle, "queued_ns": queued_ns, "at_ns": at_ns}


def test_crowding_is_that_of_the_worst_rank_and_unknown_where_it_was_not_seen() -> None:
    start = pace(0, 0, 0, 0)
    paces = [
        {"start": start, "end": pace(10 * HZ, 5 * HZ, 10**8, 10**9)},
        {"start": start, "end": pace(10 * HZ, 2 * HZ, 10**7, 10**9)},
    ]
    lates = [{"late_ns": 1, "planned_ns": 100}, {"late_ns": 3, "planned_ns": 100}]
    assert crowding(paces, lates, IdleTrace()) == Crowding(idle=0.2, queued=0.1, late=0.03)
    short = [{"start": start, "end": pace(2, 1, None, 10**9)}, None]
    assert crowding(short, [None, {"late_ns": 0, "planned_ns": 0}], IdleTrace()) == Crowding()


def test_an_exchange_that_fills_the_cores_is_found_where_the_average_hides_it() -> None:
    second = 10**9
    # A step of 4 s computes, that is sleeps, for 3 s with all idle, and exchanges for 1 s with nothing idle: 75 % idle
    # in all.
    trace = IdleTrace(
        [Reading(at * second, at * 2 * HZ, idle * 2 * HZ) for at, idle in enumerate([0, 1, 2, 3, 3, 4, 5, 6, 6])]
    )
    assert trace.full_share(0, 8 * second, 0.1) == pytest.approx(0.25)
    assert trace.full_share(0, 3 * second, 0.1) == 0 and trace.full_share(3 * second, 4 * second, 0.1) == 1
    assert IdleTrace().full_share(0, second, 0.1) is None
    region = [{"start": pace(0, 0, 0, 0), "end": pace(16 * HZ, 12 * HZ, 0, 8 * second)}]
    crowded = crowding(region, [], trace)
    assert crowded.idle == 0.75 and crowded.full == 0.25
    assert "for 25% of the time less than 10% of the cores was idle" in saturation(crowded)[0].message


def test_waiting_for_a_quota_saturates_though_cores_are_idle() -> None:
    second = 10**9

    def looks(*waited: tuple[int, int] | None) -> IdleTrace:
        return IdleTrace([Reading(at * second, at * 2 * HZ, at * HZ, waited_ns) for at, waited_ns in enumerate(waited)])

    trace = looks(*((us, us) for us in (0, 0, 100_000, 300_000, 900_000)))
    assert (
        trace.quota_share(second, 3 * second) == pytest.approx(0.15) and trace.quota_share(second // 2, second) == 0.0
    )
    assert trace.quota_share(4 * second, 5 * second) is None, "no two looks lie around it"
    assert looks(None, None).quota_share(0, second) is None
    on_32_cores = looks(*((at * 1_600_000, at * 100_000) for at in range(5)))
    assert on_32_cores.quota_share(0, 4 * second) == pytest.approx(0.1), (
        "one period each second, however many cores waited"
    )
    region = [{"start": {"at_ns": second}, "end": {"at_ns": 3 * second}}]
    assert "for 15% of the time it waited for the quota" in saturation(crowding(region, [], trace))[0].message


def test_each_kind_of_saturation_is_a_warning_and_a_quiet_launch_has_none() -> None:
    quiet = Crowding(idle=0.5, queued=0.02, late=0.01)
    assert saturation(quiet) == saturation(Crowding()) == []
    wrong = [replace(quiet, idle=0.05), replace(quiet, late=0.1)]
    assert [[warning.code for warning in saturation(trace)] for trace in wrong] == [["saturated"]] * 2
    assert saturation(replace(quiet, queued=0.5)) == []
    assert "5% of the cores' time was idle" in saturation(wrong[0])[0].message


def test_a_launch_that_saturated_the_cores_counts_in_no_metric_and_says_so() -> None:
    rows = samples(
        *step(0, 0, 0),
        *step(1, 0, 0),
        *((rank, event, 0, at, at) for rank in range(2) for event, at in (("start", 0), ("end", 100))),
    )
    good = record(CASE)
    crowded = record(CASE, warnings=saturation(Crowding(idle=0.0)))
    assert throughput(good, rows) == pytest.approx(80) and times_count(good) and not good.excluded
    assert throughput(crowded, rows) is None and step_s(crowded, rows) is None
    assert crowded.evidence_text.endswith("excluded: saturated")


def test_dilation_and_shrink_stand_beside_the_evidence() -> None:
    slow = record({**CASE, "fabric": "netns", "dilation": 8, "shrink": 64}, evidence="emulated")
    assert slow.evidence_text == "emulated, dilation 8, shrink 64"
    missed = link_warnings({"found": [{"set_mbit": 100.0, "mbit": 60.0}]})
    assert slow.model_copy(update={"warnings": missed}).evidence_text == "emulated, dilation 8, shrink 64, links missed"
    held = link_warnings({"found": [{"set_mbit": 100.0, "mbit": 95.6}]})
    assert held == [] and "missed" not in slow.model_copy(update={"warnings": held}).evidence_text
    assert record({**CASE, "fabric": "simulated", "dilation": 8}, evidence="simulated").evidence_text == "simulated"
    assert np.isnan(asleep()[0].accuracy(NoData.test))


def test_buckets_hold_the_same_tensors_however_small_these_are() -> None:
    table: Network = registry.load("workload", "vgg_a")(32, 0.25)
    members = []
    for shrink in (1.0, 16.0):
        case = case_from(
            {
                **CASE,
                "workload": "vgg_a",
                "workload.image_side": 32,
                "workload.width": 0.25,
                "fabric": "simulated",
                "shrink": shrink,
                "strategy.bucket_mib": 2,
            }
        )
        assert isinstance(case, TrainCase)
        context: Any = SimpleNamespace(case=case, world_size=2)
        own = LocalOnly.open(context, None, table, case.value("strategy.bucket_mib", 25.0))
        predicted = exchange_plan(case, table)
        assert [(bucket.members, bucket.nbytes) for bucket in own.buckets] == list(
            zip(predicted.members, predicted.nbytes, strict=True)
        )
        members.append(predicted.members)
    assert members[0] == members[1] and len(members[0]) > 2


def test_a_burnt_pass_takes_the_core_for_as_long_as_compute_would() -> None:
    model = ReplayModel(network(), profile(), 1.0, 1.0, burns=True)
    model.bind([], 1.0, lambda index: None)
    began = time.thread_time()
    model.forward(NoData.test)
    model.backward()
    assert time.thread_time() - began >= profile().forward_s + profile().backward_s


def test_a_slept_pass_leaves_the_core_to_others() -> None:
    model = asleep()[0]
    began = time.thread_time()
    model.forward(NoData.test)
    assert time.thread_time() - began < profile().forward_s / 2
