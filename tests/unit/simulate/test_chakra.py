"""Chakra traces: written traces can be read, broken files are one-line errors, and inconsistent ranks are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scaleproof.cli import main
from scaleproof.simulate.alpha_beta_fit import Segment
from scaleproof.simulate.chakra import chakra_files
from scaleproof.simulate.chakra.chakra_files import Collective, NodeType, read_messages, set_attribute, write_messages
from scaleproof.simulate.chakra.chakra_messages_pb2 import GlobalMetadata
from scaleproof.simulate.chakra.chakra_messages_pb2 import Node as NodeMessage
from scaleproof.simulate.chakra.chakra_replay import replay
from scaleproof.simulate.chakra.chakra_trace import GROUPS, Node, Trace, read_trace, write_trace
from scaleproof.simulate.cost_model import MessageCosts
from scaleproof.spec.cluster import star
from scaleproof.spec.errors import SpecError

COSTS = MessageCosts((Segment(None, 1e-5, 0.0),), 0.0)
MB = 1_000_000


def comp(id: int, seconds: float, *after: int) -> Node:
    return Node(id, f"comp {id}", NodeType.COMP, after, seconds=seconds)


def reduce(id: int, nbytes: int, *after: int, group: str | None = None) -> Node:
    return Node(
        id, f"reduce {id}", NodeType.COMM_COLL, after, nbytes=nbytes, operation=Collective.ALL_REDUCE, group=group
    )


def send(id: int, peer: int, *after: int, tag: int = 0) -> Node:
    return Node(id, f"send {id}", NodeType.COMM_SEND, after, nbytes=MB, peer=peer, tag=tag)


def receive(id: int, peer: int, *after: int, tag: int = 0) -> Node:
    return Node(id, f"receive {id}", NodeType.COMM_RECV, after, nbytes=MB, peer=peer, tag=tag)


def replayed(*ranks: tuple[Node, ...], **groups: tuple[int, ...]) -> np.ndarray:
    """Links of 8 Gbit/s: 1 MB takes 1 ms, and 10 us before it."""
    return replay(Trace(ranks, groups), star("test", len(ranks), 8000.0, 0.0), COSTS, "ring").end * 1e3


def test_the_file_is_what_chakra_says(tmp_path: Path):
    write_trace(tmp_path, "x", Trace(((Node(7, "n", NodeType.COMP, (3,), seconds=5e-6),),), about={"a": "b"}))
    content = (tmp_path / "x.0.et").read_bytes()
    head = (
        b"\x0a\x050.0.4" + b"\x12\x07\x0a\x01a\xea\x01\x01b"
    )  # version = 1; attr = 2 with name = 1 and string_val = 29
    assert content[: len(head) + 1] == bytes([len(head)]) + head
    assert b"\x08\x07\x12\x01n\x18\x04\x2a\x01\x03\x38\x05" in content, (
        "id 1, name 2, type 3, data_deps 5 packed, duration_micros 7"
    )
    assert b"\x0a\x09is_cpu_op\xd8\x01\x00" in content, "bool_val = 27"


def test_the_size_of_an_all_gather_is_the_contribution_of_one_rank():
    part = Node(0, "gather", NodeType.COMM_COLL, (), nbytes=MB, operation=Collective.ALL_GATHER)
    assert replayed((part,), (part,)) == pytest.approx([1.01] * 2), (
        "as ASTRA-sim takes it: one round with each rank's part of 1 MB"
    )


def test_computing_overlaps_with_a_collective_and_waits_where_it_must():
    rank = (comp(0, 1e-3), reduce(1, 2 * MB, 0), comp(2, 1e-3, 0), comp(3, 1e-3, 1, 2))
    assert replayed(rank, rank) == pytest.approx([1 + 2.02 + 1] * 2), "two rounds of 1 MB beside 1 ms of computing"


def test_calls_of_a_rank_go_one_after_the_other_and_groups_side_by_side():
    together = (reduce(0, 2 * MB), reduce(1, 2 * MB))
    assert replayed(together, together) == pytest.approx([4.04] * 2)
    left, right = (reduce(0, 2 * MB, group="1"),), (reduce(0, 2 * MB, group="2"),)
    assert replay(
        Trace((left, left, right, right), {"1": (0, 1), "2": (2, 3)}), star("test", 4, 8000.0, 0.0), COSTS, "ring"
    ).end * 1e3 == pytest.approx([2.02] * 4)


def test_a_message_starts_when_both_ends_have_come_to_it():
    assert replayed(
        (comp(0, 1e-3), send(1, 1, 0)), (comp(0, 3e-3), receive(1, 0, 0), comp(2, 1e-3, 1))
    ) == pytest.approx([4.01, 5.01])


def test_messages_to_one_rank_share_its_link():
    assert replayed((receive(0, 1), receive(1, 2)), (send(0, 0),), (send(0, 0),)) == pytest.approx([2.01, 2.01, 2.01])


def test_collectives_and_messages_in_one_trace():
    first = (reduce(0, 2 * MB), send(1, 1, 0))
    assert replayed(first, (reduce(0, 2 * MB), receive(1, 0, 0))) == pytest.approx([3.03, 3.03])


def test_a_stream_of_computing_keeps_the_order_of_the_file():
    assert replayed((reduce(0, 2 * MB), comp(1, 1e-3, 0), comp(2, 1e-3)), (reduce(0, 2 * MB),)) == pytest.approx(
        [4.02, 2.02]
    )


def test_a_stream_of_computing_keeps_the_order_of_the_file_beside_messages_too():
    first = (receive(0, 1), comp(1, 1e-3, 0), comp(2, 1e-3))
    assert replayed(first, (send(0, 0),)) == pytest.approx([3.01, 1.01])


def test_times_are_rounded_without_adding_up(tmp_path: Path):
    nodes = tuple(comp(number, 0.6e-6, *([number - 1] if number else [])) for number in range(1000))
    write_trace(tmp_path, "x", Trace((nodes,)))
    assert sum(node.seconds for node in read_trace(tmp_path).ranks[0]) == pytest.approx(600e-6)


@pytest.mark.parametrize(
    ("ranks", "groups", "message"),
    [
        (((reduce(0, 8),), ()), {}, "rank 1 has 0, rank 0 has 1"),
        (
            ((reduce(0, 8),), (reduce(0, 16),)),
            {},
            "ALL_REDUCE of 8 bytes (rank 0) and ALL_REDUCE of 16 bytes (rank 1) at once",
        ),
        (((send(0, 1),), ()), {}, "trace: rank 1 is sent 1 messages with tag 0 that no receive of its source takes"),
        (((send(0, 7),), ()), {}, "rank 0, node 0 (sends 1e+06 B to rank 7, tag 0): there are 2 ranks, from 0"),
        (
            ((send(0, 1, 1), receive(1, 1)), (send(0, 0, 1), receive(1, 0))),
            {},
            "trace: ranks wait for each other for ever: rank 0, node 0 (receives from rank 1, tag 0); then",
        ),
        (
            ((reduce(0, 8, group="1"), reduce(1, 8)), (reduce(0, 8), reduce(1, 8, group="1"))),
            {"1": (0, 1)},
            "trace: ranks wait for each other for ever: rank 0, node 0 (reduce 0); then rank 1, node 0 (reduce 0)",
        ),
        (
            ((reduce(0, 8, group="1"),), (reduce(0, 8, group="1"),)),
            {"1": (0,)},
            "rank 1 has a collective of group '1', to which it does not belong",
        ),
        (
            ((Node(0, "a", NodeType.COMM_COLL, nbytes=8, operation=Collective.ALL_TO_ALL),),) * 2,
            {},
            "ALL_TO_ALL is not simulated",
        ),
    ],
)
def test_inconsistent_traces_of_ranks_are_refused(ranks: Any, groups: Any, message: str):
    with pytest.raises(SpecError) as mistake:
        replayed(*ranks, **groups)
    assert message in str(mistake.value) and "\n" not in str(mistake.value)


def test_a_trace_of_another_number_of_ranks_is_refused():
    with pytest.raises(SpecError, match="^trace: the trace has 1 ranks"):
        replay(Trace(((comp(0, 1.0),),)), star("test", 2, None, 0.0), COSTS, "ring")


def broken(folder: Path, how: str) -> None:
    """A valid trace of two ranks, damaged in one way."""
    write_trace(folder, "x", Trace(((comp(0, 1e-3), reduce(1, 8, 0)),) * 2))
    path = folder / "x.1.et"
    content = path.read_bytes()
    if how in ("missing", "other name"):
        path.rename(folder / ("x.3.et" if how == "missing" else "y.1.et"))
    elif how == "groups":
        (folder / GROUPS).write_text('{"1": [0, 5]}')
    elif how == "groups form":
        (folder / GROUPS).write_text("[1]")
    else:
        path.write_bytes(
            {
                "empty": b"",
                "early": content[:-3],
                "text": b"no trace at all, but text",
                "length": b"\xff" * 9,
                "huge": b"\xff\xff\xff\x7f",
            }[how]
        )


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("missing", "none of rank 1"),
        ("other name", "traces of 2 names (x, y)"),
        ("empty", "x.1.et: is empty"),
        ("early", "message 2 is cut off: the file ends 3 bytes too early"),
        ("text", "message 0 is cut off"),
        ("length", "message 0 has no length"),
        ("huge", "message 0 would have 268435455 bytes"),
        ("groups", "group '1' has members that are no ranks"),
        ("groups form", "not of the form"),
    ],
)
def test_a_broken_folder_is_a_one_line_error(how: str, message: str, tmp_path: Path):
    broken(tmp_path, how)
    with pytest.raises(SpecError) as mistake:
        read_trace(tmp_path)
    assert message in str(mistake.value) and "\n" not in str(mistake.value)


@pytest.mark.parametrize(
    ("cap", "least", "message"),
    [
        ("MOST_FILE", 10, "bytes; a Chakra trace of more than 10 is not read"),
        ("MOST_NODES", 1, "more than 1 nodes"),
        ("MOST_MESSAGE", 10, "message 1 would have"),
    ],
)
def test_a_file_beyond_a_cap_is_not_read(
    cap: str, least: int, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    write_trace(tmp_path, "x", Trace(((comp(0, 1e-3), comp(1, 1e-3)),)))
    monkeypatch.setattr(chakra_files, cap, least)
    with pytest.raises(SpecError, match=message):
        read_trace(tmp_path)


def test_messages_are_written_in_chakras_fields(tmp_path: Path):
    """Field numbers 1 (id), 2 (name), 3 (type), 5 (data_deps), 7 (duration_micros) and 10 (attr), by hand."""
    path = tmp_path / "x.0.et"
    write_messages(path, GlobalMetadata(version="0.0.4"), [])
    assert path.read_bytes() == bytes.fromhex("07 0a05") + b"0.0.4"
    node = NodeMessage(id=3, name="a", type=NodeType.COMM_COLL, data_deps=[1, 2], duration_micros=5)
    set_attribute(node, "n", "int64", 8)
    write_messages(path, GlobalMetadata(), [node])
    written = (
        bytes.fromhex("00 14 0803 1201") + b"a" + bytes.fromhex("1807 2a020102 3805 5205 0a01") + b"n" + b"\x48\x08"
    )
    assert path.read_bytes() == written
    assert read_messages(path) == (GlobalMetadata(), [node])


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([{"id": 1}, {"id": 1}], "two nodes have the same id"),
        ([{"id": 1, "data_deps": [5]}], "node 1 waits for node 5, which does not exist"),
        ([{"id": 1, "data_deps": [2]}, {"id": 2, "ctrl_deps": [1]}], "wait for each other in a circle"),
        ([{"id": 1, "type": 7, "comm_type": 99}], "collective of unknown comm_type 99"),
        ([{"id": 1, "type": 7, "comm_size": -4}], "comm_size -4, which is no count"),
        ([{"id": 1, "type": 5, "comm_src": 3}], "sends from rank 3, but this is the file of rank 0"),
    ],
)
def test_an_invalid_node_is_named(nodes: list[dict[str, Any]], message: str, tmp_path: Path):
    made = []
    for values in nodes:
        fields = {name: value for name, value in values.items() if not name.startswith("comm_")}
        made.append(NodeMessage(**fields))
        for name in values.keys() - fields.keys():
            set_attribute(made[-1], name, "int64", values[name])
    write_messages(tmp_path / "x.0.et", GlobalMetadata(version="0.0.4"), iter(made))
    with pytest.raises(SpecError) as mistake:
        read_trace(tmp_path)
    assert message in str(mistake.value) and "\n" not in str(mistake.value)


def test_every_integer_type_of_protobuf_is_read(tmp_path: Path):
    node = NodeMessage(id=1, type=7)
    set_attribute(node, "comm_size", "uint64", 4096)
    set_attribute(node, "comm_type", "int32", 7)
    write_messages(tmp_path / "x.0.et", GlobalMetadata(version="0.0.4"), iter([node]))
    (call,) = read_trace(tmp_path).ranks[0]
    assert (call.nbytes, call.operation) == (4096, Collective.REDUCE_SCATTER)


def test_a_trace_can_be_written_and_simulated_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    folder = tmp_path / "suites" / "mine"
    folder.mkdir(parents=True)
    case = (
        "workload: {name: cd_dnn, width: 0.25}, minibatch: 64, strategy: sync_overlap, steps: 1, ranks: 2, "
        "fabric: {name: simulated, cluster: ethernet_10g}"
    )
    (folder / "suite.yaml").write_text(
        "suite: mine\ntitle: mine\nexperiments:\n  e:\n    summary: s\n"
        f"    base: {{program: train, {case}, compute.profile: xeon_e5_2698v3_x2, compute.efficiency: 0.5}}\n"
        "    arms: {tcp: {transport: tcp, collective: ring}}\n"
        "    sizes: {smoke: {launches: 1, matrix: [{arms: [tcp]}]}}\n"
    )
    out, suites = tmp_path / "traces", ["--suites", str(tmp_path / "suites"), "--results", str(tmp_path)]
    assert main(["chakra", "export", "", "--ranks", "4", "--out", str(out), *suites]) == 0
    assert sorted(path.name for path in out.iterdir()) == [f"cd_dnn.{rank}.et" for rank in range(4)]
    capsys.readouterr()
    assert main(["chakra", "replay", str(out), "--json", "--results", str(tmp_path)]) == 0
    ours = json.loads(capsys.readouterr().out)
    assert ours["cluster"] == "ethernet_10g" and ours["ranks"] == 4 and 0 < ours["exposed_s"] < ours["step_s"]
    assert main(["chakra", "replay", str(out), "--fabric", "1g", "--json", "--results", str(tmp_path)]) == 0
    assert json.loads(capsys.readouterr().out)["step_s"] > ours["step_s"]
    assert main(["chakra", "replay", str(out), "--results", str(tmp_path)]) == 0
    assert "evidence: simulated" in capsys.readouterr().out
    mistakes = {
        "holds traces already": ["export", "", "--out", str(out), *suites],
        "begins no case": ["export", "zz", "--out", str(tmp_path / "no"), *suites],
        "no such folder": ["replay", str(tmp_path / "no")],
        "unknown fabric '10gb'; did you mean '10g'?": ["replay", str(out), "--fabric", "10gb"],
        "did you mean 'ring'?": ["replay", str(out), "--collective", "rnig"],
    }
    for message, arguments in mistakes.items():
        assert main(["chakra", *arguments]) == 2
        printed = capsys.readouterr().err
        assert message in printed and printed.count("\n") == 1


def test_a_foreign_trace_needs_a_description_of_its_links(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    write_trace(tmp_path, "x", Trace(((comp(0, 1e-3), reduce(1, 8, 0)),) * 2))
    assert main(["chakra", "replay", str(tmp_path), "--results", str(tmp_path)]) == 2
    assert "give --fabric" in capsys.readouterr().err
    assert main(["chakra", "replay", str(tmp_path), "--fabric", "25g", "--results", str(tmp_path)]) == 0
