"""The network of an emulated cluster without building it: interfaces, routes, token buckets, errors, and warnings about
its links."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from scaleproof.core import location
from scaleproof.core.atomic_write import write_json
from scaleproof.core.record_schema import RankNetwork
from scaleproof.fabric import node_coordinator, probe
from scaleproof.fabric.netns import core_quota, netns, netns_node, node_shell, veth_links
from scaleproof.fabric.netns.netns import Netns
from scaleproof.fabric.netns.netns_coordinator import NamespaceCoordinator
from scaleproof.fabric.netns.netns_plan import NamespacePlan, read_plan
from scaleproof.fabric.netns.rate_probes import rate_probers
from scaleproof.fabric.node_coordinator import Node
from scaleproof.fabric.topology import PORTS, EmulatedNetwork, emulated_network
from scaleproof.launch.finish.disturbances import link_warnings
from scaleproof.launch.launchers.mpirun import options_over
from scaleproof.launch.start.on_namespaces import NamespacesLauncher
from scaleproof.record.wire import too_few_link_bytes, traffic_by_namespace
from scaleproof.spec import link_rates
from scaleproof.spec.case import parse_case
from scaleproof.spec.cluster import Cluster, Link, cluster_of, load_cluster, ready_clusters, slowed, star
from scaleproof.spec.errors import FieldError, SpecError
from tests.short_form import case_from, ring_case

MB = 10**6
CASE = {
    "program": "transfer",
    "suite": "s",
    "experiment": "e",
    "arm": "a",
    "transport": "tcp",
    "collective": "ring",
    "sizes": [8],
    "fabric": "netns",
}


def ring(nodes: int) -> Cluster:
    return Cluster(
        "ring",
        nodes,
        (),
        tuple(Link((f"node{node}", f"node{(node + 1) % nodes}"), 100.0, 0.5) for node in range(nodes)),
    )


TRUNK = Link(("left", "right"), 50.0, 1.0)


def two_switches(*more: Link) -> Cluster:
    edges = (Link(("node0", "left"), 100.0, 0.0), Link(("node1", "right"), 100.0, 0.0), TRUNK)
    return Cluster("two", 2, ("left", "right"), (*edges, *more))


def walk(network: EmulatedNetwork, number: int, to: int) -> list[str]:
    """Nodes and switches that a frame passes if nodes follow their routes and switches their entries."""
    route = next(route for route in network.routes[number] if route.to == to)
    at = next(end for _, end in network.node_ends(number) if end.interface == route.interface)
    passed = [at.vertex]
    while True:
        pair = next(pair for pair in network.ends if at in pair)
        neighbour = pair[1] if pair[0] == at else pair[0]
        passed.append(neighbour.vertex)
        if neighbour.node is not None:
            assert (neighbour.node, neighbour.mac) == (route.via, route.mac)
            return passed
        port = next(port for mac, port in network.forwarding[neighbour.vertex] if mac == route.mac)
        at = next(end for pair in network.ends for end in pair if end.interface == port)


def test_a_star_is_one_subnet_with_a_learning_switch():
    network = emulated_network(star("s", 5, 100.0, 0.0))
    assert network.bridged
    assert [[end.interface for _, end in network.node_ends(number)] for number in range(5)] == [["eth0"]] * 5
    assert len({end.mac for pair in network.ends for end in pair}) == 10
    assert network.route_links(0, 3) == [Link(("node0", "switch"), 100.0, 0.0), Link(("node3", "switch"), 100.0, 0.0)]


def test_switches_learn_addresses_in_a_tree_and_not_in_a_cycle():
    assert emulated_network(two_switches()).bridged
    assert not emulated_network(two_switches(Link(("left", "right"), 50.0, 0.0))).bridged


def test_nodes_forward_only_where_there_is_no_other_path():
    network = emulated_network(ring(4))
    assert not network.bridged
    assert [end.interface for _, end in network.node_ends(0)] == ["eth0", "eth1"]
    assert [len(network.route_links(0, to)) for to in (1, 2, 3)] == [1, 2, 1]
    assert network.forwarding_nodes()
    assert walk(network, 0, 3) == ["node0", "node3"]


def test_nodes_that_probe_their_links_at_once_share_no_link():
    thin = Cluster(
        "thin",
        4,
        ("left", "right"),
        (*(Link((f"node{node}", "left" if node % 2 else "right"), 100.0, 0.0) for node in range(4)), TRUNK),
    )
    assert rate_probers(emulated_network(thin)) == {0, 1}, "one way through the trunk in each direction"
    assert rate_probers(emulated_network(ring(4))) == set(range(4))
    paths = {
        mbit: rate_probers(emulated_network(star("star", 6, mbit, 0.0))) for mbit in (100.0, 800.0, 5000.0, 1.0, 0.1)
    }
    assert paths == {100.0: set(range(6)), 800.0: {0, 1}, 5000.0: {0}, 1.0: {0, 2, 4}, 0.1: set()}


def test_probes_of_a_slow_path_share_no_link_with_those_of_a_fast_one():
    """Nodes 1 and 4 stream over b to c; node 4 is limited by its own slow link."""
    at, rates = "abcbac", (100.0, 25.0, 25.0, 25.0, 5.0, 100.0)
    edges = [
        Link((f"node{node}", location), mbit, 0.0) for node, (location, mbit) in enumerate(zip(at, rates, strict=True))
    ]
    network = emulated_network(
        Cluster("mixed", 6, ("a", "b", "c"), (*edges, Link(("a", "b"), 100.0, 0.0), Link(("b", "c"), 25.0, 0.0)))
    )
    chosen = rate_probers(network)
    assert 1 in chosen and 4 not in chosen
    directed = [set(network.directed_links(node, (node + 1) % 6)) for node in chosen]
    assert sum(map(len, directed)) == len(set().union(*directed))


def test_switches_are_taken_before_other_nodes():
    """node0 to node1 over two switches, though node2 links both."""
    edges = [
        Link((source, destination), None, 0.0)
        for source, destination in (
            ("node0", "a"),
            ("a", "b"),
            ("b", "c"),
            ("c", "node1"),
            ("node0", "node2"),
            ("node2", "node1"),
        )
    ]
    network = emulated_network(Cluster("x", 3, ("a", "b", "c"), tuple(edges)))
    assert walk(network, 0, 1) == ["node0", "a", "b", "c", "node1"]
    assert network.forwarding_nodes() == set()


@pytest.mark.parametrize("name", ready_clusters())
@pytest.mark.parametrize("nodes", [2, 8])
def test_every_ready_cluster_loads_and_all_its_nodes_reach_each_other(name, nodes):
    network = emulated_network(load_cluster(name, nodes))
    for number in range(nodes):
        for to in set(range(nodes)) - {number}:
            assert network.route_links(number, to)
            if not network.bridged:
                assert walk(network, number, to)[-1] == f"node{to}"


def test_a_dgx_takes_nvlink_where_there_is_one_and_pci_express_elsewhere():
    network = emulated_network(load_cluster("dgx1p_like", 8))
    assert [link.mbit for link in network.route_links(0, 4)] == [18 * 8000.0]
    assert [link.mbit for link in network.route_links(0, 5)] == [96000.0, 96000.0, 48000.0, 96000.0, 96000.0]


@pytest.mark.parametrize(
    ("cluster", "message"),
    [
        (star("s", 2, 1e-3, 0.0), "node0 and switch has 0.001 Mbit/s after dilation and shrink; 0.01 is the least"),
        (star("wide", PORTS + 1, None, 0.0), "switch switch has 1024 links, and a bridge 1023 ports"),
        (
            Cluster("cut", 2, (), (Link(("node0", "node2"), 1.0, 0.0), Link(("node2", "node1"), 1.0, 0.0))),
            "node0 has no way to node1 over the 2 nodes in use",
        ),
    ],
)
def test_a_cluster_that_cannot_be_built_is_a_one_line_error(cluster, message):
    with pytest.raises(SpecError, match=message) as raised:
        emulated_network(cluster)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("star: {gbit: 0}", "gbit"),
        ("star: {gbit: -1}", "gbit"),
        ("star: {gbit: 1, delay_us: -1}", "delay_us"),
        ("star: {gbit: fast}", "gbit"),
        ("star: {gbit: 1}\nnodes: 2", "a star has no links, switches or nodes beside it"),
        ("nodes: 2", "either `star`, or `nodes` and `links`"),
        ("nodes: 2\nlinks: [{between: [node0, nod1], gbit: 1}]", "unknown place 'nod1'; did you mean 'node1'"),
        ("nodes: 2\nlinks: [{between: [node0, node0], gbit: 1}]", "two different ends"),
        ("nodes: 3\nlinks: [{between: [node0, node1], gbit: 1}]", "no way from node0 to node2"),
        ("nodes: 1\nlinks: [{between: [node0, node1], gbit: 1}]", "2 nodes asked for, the description has 1"),
        ("nodes: 2\nlinks: [{between: [node0, node1], gbit: 1, cuont: 2}]", "did you mean 'count'"),
    ],
)
def test_a_bad_description_is_a_one_line_error_with_file_and_line(tmp_path, text, message):
    file = tmp_path / "bad.yaml"
    file.write_text(f"summary: bad\nsource: a test\n{text}\n")
    with pytest.raises(SpecError) as raised:
        load_cluster(str(file), 2)
    assert message in str(raised.value) and "bad.yaml" in str(raised.value) and "\n" not in str(raised.value)


def test_a_description_that_was_edited_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    for second, gbit in enumerate((1, 10)):
        file.write_text(f"summary: own\nsource: a test\nstar: {{gbit: {gbit}, delay_us: 5}}\n")
        os.utime(file, (second, second))
        assert load_cluster(str(file), 2).links[0].mbit == gbit * 1000


def test_more_nodes_than_addresses_are_refused():
    case = case_from({**CASE, "ranks": 70_000})
    with pytest.raises(SpecError, match="70000 nodes, and addresses for 64000"):
        cluster_of(case)


def test_a_share_of_a_core_is_for_nodes_of_namespaces():
    assert case_from({**CASE, "fabric.node_cores": 0.25}).value("fabric.node_cores") == 0.25
    with pytest.raises((FieldError, ValueError), match="'netns' has it"):
        parse_case({**CASE, "fabric": "guests", "fabric.node_cores": 0.25})


def test_an_interface_that_nodes_do_not_have_is_refused():
    hindrance = Netns("eth3").obstacle()
    assert hindrance is not None and "no interface 'eth3'" in hindrance[0]


def test_a_bucket_holds_a_millisecond_and_two_frames_at_least():
    assert link_rates.burst(1000) == 125_000
    assert link_rates.burst(1) == 2 * link_rates.FRAME == 3028
    assert veth_links.queue(10) == veth_links.LEAST_QUEUE and veth_links.queue(1000) == 2_500_000


def test_a_plan_comes_back_as_it_was_written(tmp_path):
    plan = NamespacePlan(slowed(load_cluster("aws_10gbe", 3), 10, 2), [["a"], [], []], [[0], [1], [2]], 0.5, 2)
    plan.write(tmp_path)
    assert read_plan(tmp_path) == plan
    assert plan.cluster.links[0] == Link(("node0", "switch"), 500.0, 0.24)


def test_a_nodes_share_of_processor_time_is_dilated_as_its_compute_is(tmp_path):
    options: dict[str, Any] = {"fabric.node_cores": 0.5, "fabric.link_mbit": 100, "dilation": 4}
    case = ring_case(fabric="netns", **options)
    launch_spec: Any = SimpleNamespace(parsed_case=case)
    NamespacesLauncher("local").command(tmp_path, launch_spec)
    assert read_plan(tmp_path).cores == 0.125


def test_sockets_hold_as_large_a_part_of_a_shrunken_message(tmp_path):
    assert netns_node.buffers(1) == {
        "ipv4/tcp_wmem": f"4096 {16 << 10} {4 << 20}",
        "ipv4/tcp_rmem": f"4096 {128 << 10} {6 << 20}",
    }
    assert netns_node.buffers(64) == {
        "ipv4/tcp_wmem": f"4096 {16 << 10} {64 << 10}",
        "ipv4/tcp_rmem": f"4096 {96 << 10} {96 << 10}",
    }
    assert netns_node.buffers(1e6) == {
        "ipv4/tcp_wmem": f"4096 {16 << 10} {16 << 10}",
        "ipv4/tcp_rmem": f"4096 {32 << 10} {32 << 10}",
    }
    options: dict[str, Any] = {"fabric.link_mbit": 100, "shrink": 8}
    case = ring_case(sizes=[4096], fabric="netns", **options)
    launch_spec: Any = SimpleNamespace(parsed_case=case)
    NamespacesLauncher("local").command(tmp_path, launch_spec)
    assert read_plan(tmp_path).shrink == 8


def test_a_pair_that_names_no_ranks_has_two_nodes_all_the_same():
    fields = {"suite": "s", "experiment": "e", "arm": "a", "program": "transfer", "transport": "tcp", "sizes": [8]}
    case = case_from({**fields, "fabric": "netns", "fabric.link_mbit": 100})
    assert (case.ranks, case.nodes, case.interface) == (2, 2, "eth0")


def test_mpirun_starts_ranks_on_nodes_by_a_shell_of_our_own():
    options = options_over({"node0": 2, "node1": 1}, "eth0")
    assert options[:4] == ["-n", "3", "--host", "node0:2,node1:1"]
    assert options[options.index("plm_ssh_agent") + 1].endswith("-m scaleproof.fabric.netns.node_shell")
    assert (
        options[options.index("btl") + 1] == "self,tcp" and options[options.index("btl_tcp_if_include") + 1] == "eth0"
    )


def test_a_command_line_runs_on_the_node_that_serves(tmp_path, monkeypatch):
    monkeypatch.setenv(node_shell.FOLDER, str(tmp_path))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(node_shell.socket_path("node1"))
        listener.listen()

        def answer() -> None:
            opened = listener.accept()[0]
            request, files, _, _ = socket.recv_fds(opened, 4096, 3)
            opened.sendall(b"7" if request == b'"echo a b"' and len(files) == 3 else b"1")
            opened.close()

        threading.Thread(target=answer).start()
        monkeypatch.setattr("sys.argv", ["reach", "node1", "echo", "a b"])
        assert node_shell.main() == 7


class FakeClock:
    """Stands for the module `time`; each sleep does the next of `steps`, if one is left."""

    def __init__(self, *steps: Callable[[], object]) -> None:
        self.steps, self.now = list(steps), 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        if self.steps:
            self.steps.pop(0)()


def test_a_node_that_does_not_serve_yet_is_waited_for(tmp_path, monkeypatch):
    monkeypatch.setenv(node_shell.FOLDER, str(tmp_path))
    monkeypatch.setattr("sys.argv", ["reach", "node1", "true"])

    def answer() -> None:
        opened = listener.accept()[0]
        opened.recv(4096)
        opened.sendall(b"0")
        opened.close()

    with socket.socket(socket.AF_UNIX) as listener:

        def listen() -> None:
            listener.listen()
            threading.Thread(target=answer).start()

        clock = FakeClock(lambda: listener.bind(node_shell.socket_path("node1")), listen)
        monkeypatch.setattr(node_shell, "time", clock)
        assert node_shell.main() == 0
        assert clock.steps == []


def test_a_node_that_never_serves_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setenv(node_shell.FOLDER, str(tmp_path))
    monkeypatch.setattr("sys.argv", ["reach", "node1", "true"])
    clock = FakeClock()
    monkeypatch.setattr(node_shell, "time", clock)
    with pytest.raises(FileNotFoundError):
        node_shell.main()
    assert clock.now > node_shell.START_S


def test_nodes_that_wait_are_gone_before_their_groups_are_removed(tmp_path, monkeypatch):
    waiting = subprocess.Popen(["sleep", "60"], start_new_session=True)
    ended = subprocess.Popen(["true"], start_new_session=True)
    exit_codes: list[int | None] = []

    def build(coordinator: NamespaceCoordinator) -> None:
        coordinator.nodes = [Node(number, process, time.monotonic()) for number, process in enumerate((ended, waiting))]
        coordinator.quota = core_quota.Quota("scaleproof-x", 2, 0.5, tmp_path / "absent")
        monkeypatch.setattr(coordinator.quota, "remove", lambda: exit_codes.append(waiting.poll()))

    monkeypatch.setattr(NamespaceCoordinator, "build", build)
    monkeypatch.setattr(node_coordinator.signal, "signal", lambda *arguments: None)
    for number in (0, 1):
        (tmp_path / f"node-{number}.console").touch()
    write_json(tmp_path / "node-0.end", {"code": 0})
    plan = NamespacePlan(star("s", 2, None, 0.0), [["mpirun"], []])
    assert NamespaceCoordinator(tmp_path, plan, lambda number: 0).run() == 0
    assert exit_codes == [-9]


def test_a_kernel_without_control_groups_gives_the_reason(tmp_path):
    quota = core_quota.Quota("scaleproof-x", 2, 0.5, tmp_path / "absent")
    assert not quota.report()["in_effect"] and quota.why
    quota.join(0)
    assert core_quota.leftovers("scaleproof-", tmp_path) == core_quota.remove("scaleproof-x", tmp_path) == []


@pytest.mark.parametrize(
    ("cores", "limit", "in_effect"),
    [(0.04, "1000 25000", 0.04), (0.07, "1000 14286", 0.07), (1e-4, "1000 1000000", 1e-3), (2, "20000 10000", 2)],
)
def test_a_small_quota_has_a_longer_period_and_reports_its_effective_value(tmp_path, cores, limit, in_effect):
    (tmp_path / "cgroup.controllers").write_text("cpu")
    (tmp_path / "cgroup.subtree_control").touch()
    assert core_quota.Quota("scaleproof-y", 1, cores, tmp_path).report()["cores"] == in_effect
    assert (tmp_path / "scaleproof-y/node0/cpu.max").read_text() == limit


def test_version_two_groups_get_a_quota_per_period(tmp_path):
    (tmp_path / "cgroup.controllers").write_text("cpu")
    (tmp_path / "cgroup.subtree_control").touch()
    made = core_quota.Quota("scaleproof-y", 1, 0.25, tmp_path)
    assert made.report() == {"cores": 0.25, "version": 2, "in_effect": True, "why": ""}
    assert (tmp_path / "scaleproof-y/node0/cpu.max").read_text() == "2500 10000"
    assert core_quota.leftovers("scaleproof-", tmp_path) == [tmp_path / "scaleproof-y"]


def of_rank(
    rank: int, asked_bytes: int, sent: dict[str, int], received: dict[str, int] | None = None, node: str = "node0/1"
) -> RankNetwork:
    zero = dict.fromkeys(("rx_bytes", "rx_packets", "tx_bytes", "tx_packets"), 0)
    after = {
        name: {**zero, "tx_bytes": count, "rx_bytes": (received or {}).get(name, 0)} for name, count in sent.items()
    }
    return RankNetwork(
        rank=rank, namespace=node, asked_bytes=asked_bytes, before=dict.fromkeys(sent, zero), after=after
    )


@pytest.mark.parametrize(
    ("parts", "moved"),
    [
        ([of_rank(0, 8 * MB, {"eth0": 8 * MB, "lo": 0})], None),
        ([of_rank(0, 8 * MB, {"eth0": 9000, "lo": 8 * MB})], 9000),
        ([of_rank(0, 8 * MB, {"eth0": 0}, {"eth0": 8 * MB})], None),
        ([of_rank(0, 8 * MB, {"eth0": MB, "eth1": 2 * MB})], None),
        ([of_rank(0, 1000, {"eth0": 0})], None),
        (
            [of_rank(0, 4 * MB, {"eth0": 3 * MB, "lo": 9 * MB}), of_rank(1, 4 * MB, {"eth0": 3 * MB, "lo": 9 * MB})],
            None,
        ),
    ],
)
def test_bytes_that_do_not_pass_a_nodes_links_are_seen(parts, moved):
    [traffic] = traffic_by_namespace(parts)
    assert too_few_link_bytes(traffic) == moved


def test_a_link_is_judged_by_what_was_set_on_its_own_way():
    links = [
        {"rtt_ms": 2.2, "set_rtt_ms": 2.0, "mbit": 47.0, "set_mbit": 50.0},
        {"rtt_ms": 0.1, "set_rtt_ms": 0.0, "mbit": 47.0, "set_mbit": 100.0},
    ]
    [warning] = link_warnings({"found": links})
    assert "node 1 47 Mbit/s, 100 set" in warning.message and "node 0" not in warning.message


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ({"rtt_ms": None, "set_rtt_ms": 2.0, "set_mbit": None}, "node 0 no answer from the next node"),
        ({"rtt_ms": 2.1, "set_rtt_ms": 2.0, "mbit": None, "set_mbit": 50.0}, "node 0 no rate at all, 50 Mbit/s set"),
        ({"rtt_ms": 2.1, "set_rtt_ms": 2.0, "set_mbit": 50.0}, None),
        ({}, None),
        (None, None),
    ],
)
def test_a_link_without_an_answer_or_rate_is_a_warning(link, expected):
    messages = [warning.message for warning in link_warnings({"found": [link]})]
    assert len(messages) == (expected is not None) and all(str(expected) in message for message in messages)


def test_an_answer_is_waited_for_as_long_as_the_link_needs(tmp_path, monkeypatch):
    monkeypatch.setattr(probe, "address", lambda number: f"127.0.0.{number + 1}")
    monkeypatch.setattr(probe, "_Answers", lambda own: nullcontext())
    monkeypatch.setattr(probe, "_meet", lambda *arguments: None)
    monkeypatch.setattr(probe, "_round_trips", lambda peer, answer_s: {"answer_s": answer_s})
    assert [probe.probe(tmp_path, 2, 0, None, rtt_ms)["answer_s"] for rtt_ms in (0.0, 100.0, 1000.0)] == [1.0, 1.0, 3.0]


@pytest.mark.parametrize("short", [None, 89.0, 112.0])
def test_a_rate_that_a_short_stream_misses_is_measured_by_a_long_one(monkeypatch, short):
    rates = {probe.SHORT_STREAM_S: short, probe.LONG_STREAM_S: 97.0}
    monkeypatch.setattr(probe, "_streamed", lambda peer, mbit, *seconds: rates[seconds])
    assert probe._rate("127.0.0.1", 100.0) == 97.0


@pytest.mark.parametrize("short", [91.0, 100.0, 110.0])
def test_a_rate_that_a_short_stream_meets_is_not_measured_again(monkeypatch, short):
    monkeypatch.setattr(probe, "_streamed", lambda peer, mbit, *seconds: {probe.SHORT_STREAM_S: short}[seconds])
    assert probe._rate("127.0.0.1", 100.0) == short


@pytest.mark.parametrize(("enough_s", "expected"), [(60.0, probe.ROUNDS), (0.0, probe.FEWEST_ROUNDS)])
def test_round_trips_that_take_long_are_fewer(monkeypatch, enough_s, expected):
    monkeypatch.setattr(probe, "ROUNDS_S", enough_s)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        monkeypatch.setattr(probe, "ECHO_PORT", server.getsockname()[1])
        thread = threading.Thread(target=lambda: [server.sendto(*server.recvfrom(64)) for _ in range(expected)])
        thread.start()
        found = probe._round_trips("127.0.0.1", 5.0)
        thread.join()
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.recvfrom(64)
    assert found["lost"] == 0 and found["rtt_ms"] > 0


def test_cables_between_nodes_are_not_pulled():
    with pytest.raises(SystemExit, match="between node0 and node1 there is no switch"):
        veth_links.set_links(emulated_network(ring(3)), 1, False)


def test_a_trial_that_timed_out_is_repeated_later(monkeypatch):
    def slow(command, **options):
        raise subprocess.TimeoutExpired(command, options["timeout"])

    netns._failure.cache_clear()
    with monkeypatch.context() as busy:
        busy.setattr(netns.subprocess, "run", slow)
        hindrance = Netns("eth0").obstacle()
    assert hindrance is not None and "took longer than 20 s" in hindrance[0] and "try again" in hindrance[1]
    monkeypatch.setattr(
        netns.subprocess, "run", lambda command, **options: subprocess.CompletedProcess(command, 0, "", "")
    )
    assert Netns("eth0").obstacle() is None
    netns._failure.cache_clear()


def test_a_rank_on_a_node_of_namespaces_maps_in_the_launch_and_tells_its_outer_number(tmp_path, monkeypatch):
    outer = tmp_path / "proc"
    (outer / "4711/task/4712").mkdir(parents=True)
    (outer / "self").symlink_to("4711")
    (outer / "4711/task/4712/status").write_text("Name:\tx\nNSpid:\t4712\t30\t2\nNSpgid:\t1\n")
    for name, value in {"SCALEPROOF_NODE": "1", "SCALEPROOF_PROC": str(outer), "TMPDIR": "/dev/shm/x"}.items():
        monkeypatch.setenv(name, value)
    assert (location.mapped(tmp_path), location.has_own_kernel(), location.pid()) == (tmp_path, False, 4711)
    assert location.threads([2]) == [4712] and location.threads([3]) == []


def test_process_numbers_are_what_they_are_elsewhere():
    assert location.pid() == int(Path("/proc/self").readlink().name)
    assert location.threads([5, 6]) == [5, 6]
