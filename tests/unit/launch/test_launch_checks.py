"""Checks around a launch: traffic on interfaces, disturbances, agreement of ranks, preflight."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scaleproof.core.board import Board
from scaleproof.core.record_schema import RankNetwork
from scaleproof.launch.finish.disturbances import address_warnings, machine_warnings, network_warnings, rank_warnings
from scaleproof.launch.finish.rank_agreement import agreement, common, own, same_libraries, seeds, unequal_hosts
from scaleproof.launch.finish.surroundings import Surroundings
from scaleproof.launch.finish.validity import disturbances
from scaleproof.launch.preflight import experiment_preflight, machine_preflight, rank_preflight
from scaleproof.launch.preflight.experiment_preflight import failed, warnings
from scaleproof.launch.watch.failure_signs import Watch
from scaleproof.record import machine_load
from scaleproof.record.machine_load import HZ
from scaleproof.record.wire import (
    NamespaceTraffic,
    foreign_bytes,
    is_on_no_interface,
    other_carrier,
    traffic_by_namespace,
    traffic_of_others,
)
from scaleproof.spec import registry
from tests.integration.launches import small_case

MB = 10**6


def counters(**sent_bytes: int) -> dict[str, dict[str, int]]:
    return {
        name: {"rx_bytes": 0, "rx_packets": 0, "tx_bytes": count, "tx_packets": 0} for name, count in sent_bytes.items()
    }


def part(
    rank: int, asked_bytes: int, before: dict[str, int], after: dict[str, int], namespace: str = "1"
) -> RankNetwork:
    return RankNetwork(
        rank=rank, namespace=namespace, asked_bytes=asked_bytes, before=counters(**before), after=counters(**after)
    )


def codes(launch_warnings: list[Any]) -> list[str]:
    return [warning.code for warning in launch_warnings]


def test_ranks_of_one_namespace_share_its_counters_and_others_have_their_own() -> None:
    together = traffic_by_namespace(
        [part(0, 5 * MB, {"lo": 10}, {"lo": 9 * MB}), part(1, 5 * MB, {"lo": 20}, {"lo": 11 * MB})]
    )
    assert [(traffic.ranks, traffic.asked_bytes, traffic.sent_bytes) for traffic in together] == [
        ((0, 1), 10 * MB, {"lo": 11 * MB - 10})
    ]
    assert len(traffic_by_namespace([part(0, 1, {}, {}), part(1, 1, {}, {}, "2")])) == 2
    assert traffic_by_namespace([]) == []


@pytest.mark.parametrize(
    ("sent_bytes", "expected"),
    [
        ({"lo": 10 * MB, "eth0": 5}, "lo"),
        ({"lo": 0, "eth0": 10 * MB}, None),
        ({"lo": 5, "eth0": 5}, None),
        ({"lo": 4 * MB, "eth0": 6 * MB}, None),
    ],
)
def test_another_interface_than_the_requested_one_is_named(sent_bytes: dict[str, int], expected: str | None) -> None:
    assert other_carrier(NamespaceTraffic("1", (0,), 10 * MB, sent_bytes), "eth0") == expected


def test_little_traffic_gives_no_warning() -> None:
    assert other_carrier(NamespaceTraffic("1", (0,), 1000, {"lo": 10 * MB, "eth0": 0}), "eth0") is None


def test_a_launch_without_counted_bytes_is_reported_as_unseen() -> None:
    assert is_on_no_interface(NamespaceTraffic("1", (0,), 10 * MB, {"lo": 100}), "lo") and not is_on_no_interface(
        NamespaceTraffic("1", (0,), 10 * MB, {"lo": 10 * MB}), "lo"
    )


def test_idle_traffic_is_no_background() -> None:
    traffic = NamespaceTraffic("1", (0,), 100 * MB, {"lo": 100 * MB, "eth0": 20 * MB})
    assert traffic_of_others(traffic, "lo", {"eth0": 10 * MB}, seconds=2) == {}
    assert traffic_of_others(traffic, "lo", {}, seconds=2) == {"eth0": 20 * MB}
    assert traffic_of_others(
        NamespaceTraffic("1", (0,), 100 * MB, {"lo": 2 * MB}), None, {}, 1
    ) and not traffic_of_others(NamespaceTraffic("1", (0,), 100 * MB, {"lo": MB // 2}), None, {}, 1)


def test_traffic_beyond_what_the_transport_can_send_is_foreign() -> None:
    assert foreign_bytes(NamespaceTraffic("1", (0,), 100 * MB, {"lo": 103 * MB}), "lo", 10) == 0
    assert foreign_bytes(NamespaceTraffic("1", (0,), 100 * MB, {"lo": 200 * MB}), "lo", 10) > 70 * MB


def test_each_kind_of_foreign_traffic_has_its_warning() -> None:
    shm, tcp = small_case(), small_case(transport="tcp")
    leak = [part(0, 100 * MB, {"lo": 0}, {"lo": 5 * MB})]
    assert codes(network_warnings(shm, leak, "shared memory", 5, {}, 1)) == ["interfaces_moved"]
    assert codes(network_warnings(shm, leak, "shared memory", 5, {"lo": 5.0 * MB}, 1)) == []
    other = [part(0, 100 * MB, {"lo": 0, "eth0": 0}, {"lo": 100 * MB, "eth0": 9 * MB})]
    assert codes(network_warnings(tcp, other, "socket", 5, {}, 1)) == ["contended_network"]
    assert codes(network_warnings(tcp, [part(0, 100 * MB, {"lo": 0}, {"lo": 300 * MB})], "socket", 5, {}, 1)) == [
        "contended_network"
    ]
    assert codes(network_warnings(tcp, [part(0, 100 * MB, {"lo": 0}, {"lo": 100})], "socket", 5, {}, 1)) == [
        "unseen_traffic"
    ]
    assert codes(network_warnings(tcp, [part(0, 100 * MB, {"lo": 0}, {"lo": 101 * MB})], "socket", 5, {}, 1)) == []


def reading(ticks: int = 0, idle: int = 0, steal: int = 0, own_s: float = 0, heat: int | None = None) -> dict[str, Any]:
    return {
        "ticks": ticks,
        "idle_ticks": idle,
        "steal_ticks": steal,
        "own_cpu_s": own_s,
        "thermal_throttles": heat,
        "temperature_c": 91.0,
    }


def test_a_launch_that_was_disturbed_is_marked() -> None:
    start, second = reading(), 10 * HZ
    assert codes(machine_warnings(start, reading(second, idle=0, own_s=10))) == []
    assert codes(machine_warnings(start, reading(second, idle=0, own_s=7))) == ["contended"]
    assert codes(machine_warnings(start, reading(second, idle=3 * HZ, own_s=7))) == []
    assert codes(machine_warnings(start, reading(second, steal=HZ, own_s=9))) == ["stolen"]
    assert codes(machine_warnings(reading(heat=4), reading(second, own_s=10, heat=6))) == ["throttled"]
    assert codes(machine_warnings(start, reading(1, own_s=0))) == [], "a tick is no share"


@pytest.mark.parametrize("timed", [True, False])
def test_work_of_launches_that_may_run_beside_a_launch_is_not_foreign(tmp_path: Path, timed: bool) -> None:
    """A record says that others may run beside it, or that others have to end: not both."""
    watch = Watch(tmp_path, Board(tmp_path / "board", 1))
    surroundings = Surroundings({}, "", load={"before": reading(), "after": reading(10 * HZ, idle=0, own_s=5)})
    surroundings.preflight = [] if timed else [machine_preflight.shared()]
    found = disturbances(small_case(), "127.0.0.1", watch, {}, surroundings, [])
    assert codes(found) == (["contended"] if timed else [])


def test_warnings_name_ranks_with_slower_cores_or_used_up_quotas() -> None:
    even = {
        "start": {"mhz": 3000, "throttled": {"times": 1, "us": 5}},
        "end": {"mhz": 2990, "throttled": {"times": 1, "us": 5}},
    }
    slow = {"start": {"mhz": 3000, "throttled": None}, "end": {"mhz": 2000, "throttled": None}}
    waits = {
        "start": {"mhz": None, "throttled": {"times": 1, "us": 5}},
        "end": {"mhz": None, "throttled": {"times": 3, "us": 90_005}},
    }
    assert rank_warnings({0: even}) == []
    launch_warnings = rank_warnings({0: even, 1: slow, 2: waits})
    assert codes(launch_warnings) == ["frequency_dropped", "throttled"]
    assert (
        "rank 1 from 3000 to 2000" in launch_warnings[0].message and "rank 2 for 0.090 s" in launch_warnings[1].message
    )


def test_power_is_the_energy_of_all_packages_over_the_time_and_survives_a_counter_that_starts_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, name in enumerate(("package-0", "package-1", "psys")):
        zone = tmp_path / f"intel-rapl:{number}"
        zone.mkdir()
        for file, text in (("name", name), ("energy_uj", "9000000"), ("max_energy_range_uj", "10000000")):
            (zone / file).write_text(f"{text}\n")
    monkeypatch.setattr(machine_load, "_POWER", tmp_path)
    monkeypatch.setattr(machine_load, "_packages", machine_load._packages.__wrapped__)
    before = {"energy": machine_load.energy_counters()}
    (tmp_path / "intel-rapl:0" / "energy_uj").write_text("9500000")
    (tmp_path / "intel-rapl:1" / "energy_uj").write_text("1000000")  # past its range: 2 J
    assert machine_load.mean_power_w(before, {"energy": machine_load.energy_counters()}, 0.5) == pytest.approx(5.0)
    assert machine_load.mean_power_w({}, {"energy": machine_load.energy_counters()}, 0.5) is None


def test_a_socket_bound_to_another_interface_is_a_warning() -> None:
    bound = {0: {"listening": ["0.0.0.0"], "connected": ["10.0.0.1", "127.0.0.1"]}}
    assert [warning.message.split(" too")[0] for warning in address_warnings(bound, "10.0.0.1", "eth0")] == [
        "sockets of ranks are listening on 0.0.0.0",
        "sockets of ranks are connected on 127.0.0.1",
    ]
    assert address_warnings({0: {"listening": [], "connected": ["10.0.0.1"]}}, "10.0.0.1", "eth0") == []


def facts(**changed: Any) -> dict[str, Any]:
    base = {
        "libraries": {"libc.so.6": "GLIBC_2.36, build 1"},
        "packages": {"numpy": "2"},
        "host": {"kernel": "6"},
        "seeds": {"launch": 7, "hash": "7"},
    }
    return base | changed


def test_ranks_with_other_libraries_fail_and_roles_do_not() -> None:
    assert all(check.passed for check in agreement({0: facts(), 1: facts()})) and agreement({0: facts()}) == []
    other = same_libraries({0: facts(), 1: facts(libraries={"libc.so.6": "GLIBC_2.31, build 2"})})
    assert (
        other.passed is False
        and "rank 0 GLIBC_2.36" in other.message
        and "rank 1 GLIBC_2.31" in other.message
        and other.advice
    )
    server = same_libraries({0: facts(packages={"numpy": "2", "grpc": "1"}), 1: facts()})
    assert server.passed and "only some ranks loaded grpc" in server.message
    assert same_libraries({0: facts(packages={"numpy": "1"}), 1: facts()}).passed is False


def test_seeds_are_equal_where_they_must_be_and_distinct_where_they_must_be() -> None:
    def logged(*pairs: dict[str, Any]) -> bool | None:
        return seeds({rank: facts(seeds=rank_seeds) for rank, rank_seeds in enumerate(pairs)}).passed

    assert logged({"launch": 7, "hash": "7", "samples": "a"}, {"launch": 7, "hash": "7", "samples": "b"})
    assert logged({"launch": 7, "hash": "7"}, {"launch": 8, "hash": "7"}) is False
    assert logged({"launch": 7, "hash": "7"}, {"launch": 7, "hash": "9"}) is False
    assert logged({"launch": 7, "hash": "7", "samples": "a"}, {"launch": 7, "hash": "7", "samples": "a"}) is False


def test_unequal_machines_are_a_warning() -> None:
    assert (
        codes(unequal_hosts({0: facts(), 1: facts(host={"kernel": "5"})})) == ["unequal_hosts"]
        and unequal_hosts({0: facts(), 1: facts()}) == []
    )


def test_facts_that_all_ranks_share_are_stored_once() -> None:
    facts_by_rank = {0: facts(libraries={"a": "1", "b": "1"}), 1: facts(libraries={"a": "1", "b": "2"})}
    assert common(facts_by_rank, "libraries") == {"a": "1"} and own(facts_by_rank[1], "libraries", {"a": "1"}) == {
        "b": "2"
    }


def rank_answer(rank: int = 0, **changed: Any) -> dict[str, Any]:
    base = {
        "host": "node/boot",
        "resolves": {"localhost": "127.0.0.1", "node": "10.0.0.1"},
        "unresolved": {},
        "ports": 6,
        "port_error": "",
    }
    base |= {"unreachable": {}, "limits": {"memlock": -1, "files": -1}}
    return base | {"gflops": 50.0, "clock": {"offset_ns": 0, "uncertainty_ns": 100}, "clock_error": None} | changed


def test_each_failed_preflight_answer_of_a_rank_has_its_code_and_advice() -> None:
    good = rank_preflight.judge({0: rank_answer(), 1: rank_answer()})
    assert all(check.passed and not check.advice for check in good) and failed(good) is None and warnings(good) == []
    bad: dict[str, dict[str, Any]] = {
        "names": {"unresolved": {"localhost": "Name or service not known"}},
        "ports": {"ports": 2, "port_error": "Address already in use"},
        "pairs": {"unreachable": {"0": "timed out"}},
        "clock": {"clock": {"offset_ns": 500, "uncertainty_ns": 100}},
    }
    for code, change in bad.items():
        failure = failed(rank_preflight.judge({0: rank_answer(), 1: rank_answer(**change)}))
        assert failure is not None and failure.code == code and failure.advice, code


def test_a_slow_core_and_a_nameless_host_are_warnings() -> None:
    slow = warnings(rank_preflight.judge({0: rank_answer(), 1: rank_answer(), 2: rank_answer(gflops=20.0)}))
    assert codes(slow) == ["speed"] and "rank 2" in slow[0].message
    assert codes(warnings(rank_preflight.judge({0: rank_answer(), 1: rank_answer(gflops=30.0)}))) == ["speed"]
    nameless = rank_answer(unresolved={"node": "unknown"})
    assert codes(warnings(rank_preflight.judge({0: nameless}))) == ["names"]


def test_clocks_of_other_machines_may_differ() -> None:
    away = rank_answer(host="other/boot", clock={"offset_ns": 10**12, "uncertainty_ns": 100})
    assert rank_preflight.clocks({0: rank_answer(), 1: away}).passed
    unknown = rank_preflight.clocks({0: rank_answer(), 1: rank_answer(clock_error="OSError: x")})
    assert unknown.passed is None and unknown.advice


def test_memory_cores_disk_and_locked_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    case = small_case(ranks=4)
    monkeypatch.setattr(machine_preflight, "usable_cores", lambda: 1.5)
    assert (
        machine_preflight.cores(case).passed
        and "count for no claim about scaling" in machine_preflight.cores(case).advice
    )
    monkeypatch.setattr(machine_preflight, "memory_left", lambda: 10 * MB)
    assert machine_preflight.memory(case).passed is False
    monkeypatch.setattr(machine_preflight, "memory_left", lambda: None)
    monkeypatch.setattr(machine_preflight, "available_mib", lambda: 1)
    assert machine_preflight.memory(case).passed and machine_preflight.memory(case).advice
    assert machine_preflight.disk(tmp_path / "none", [case]).passed
    monkeypatch.setattr(machine_preflight, "RECORD_BYTES", 1 << 60)
    assert machine_preflight.disk(tmp_path, [case]).passed is False
    assert machine_preflight.locked_memory(case, [65536]).passed
    pinning = replace(registry.get("transport", "shm"), pinned_bytes=lambda case, local: local * 30000)
    monkeypatch.setitem(registry._replaced, ("transport", "shm"), pinning)
    assert (
        machine_preflight.locked_memory(case, [65536, -1]).passed is False
        and machine_preflight.locked_memory(case, [-1]).passed
        and machine_preflight.locked_memory(case, [4 * 30000]).passed
    )
    region = small_case(transport={"name": "rdma", "region_mib": 64})
    assert machine_preflight.locked_memory(region, [64 << 20]).passed, "the region that the transport registers"
    assert machine_preflight.locked_memory(region, [(64 << 20) - 1]).passed is False
    assert machine_preflight.open_files(case, [10]).passed is False


def test_a_busy_interface_before_the_experiment_is_a_warning() -> None:
    assert codes(warnings([machine_preflight.idle_check({"eth0": 9e6, "lo": 0.0})])) == ["idle_traffic"]
    assert warnings([machine_preflight.idle_check({"eth0": 9e4})]) == []


def test_one_preflight_stands_for_all_cases_of_a_launcher_and_interface() -> None:
    cases = [
        small_case(ranks=2),
        small_case(ranks=4),
        small_case(ranks=1000),
        small_case(transport="mpi", collective="native", launcher="mpirun"),
    ]
    groups = rank_preflight.groups(cases)
    assert {key[0]: group.ranks for key, group in groups.items()} == {"local": rank_preflight.MOST_RANKS, "mpirun": 2}


def test_the_preflight_runs_once_per_experiment_and_again_after_a_failure(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    requested_groups: list[Any] = []
    answers: list[Any] = [
        machine_preflight.checked("ranks", False, "start_failed", "a"),
        {0: rank_answer(), 1: rank_answer()},
    ]

    def answers_of(group: Any, staging: Any, allocated: Any = None) -> Any:
        requested_groups.append(group)
        return answers[min(len(requested_groups), 2) - 1]

    monkeypatch.setattr(experiment_preflight, "answers_of", answers_of)
    monkeypatch.setattr(experiment_preflight, "_stored", {})
    monkeypatch.setattr(machine_preflight, "IDLE_S", 0.01)
    first, second, third = (experiment_preflight.Preflight(tmp_path, tmp_path) for _ in range(3))
    failures = [failed(first.of(small_case())) for _ in range(3)]
    assert [failure and failure.code for failure in failures] == ["ranks"] * 3 and len(requested_groups) == 1
    assert failed(second.of(small_case())) is None and failed(third.of(small_case())) is None
    assert len(requested_groups) == 2
