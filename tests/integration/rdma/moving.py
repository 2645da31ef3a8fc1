"""Checks of what moves: conformance, one-sided operations, counters, flow control, training."""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import partial
from pathlib import Path

import numpy as np

from scaleproof.collectives.group import Group
from scaleproof.core.context import RankContext
from scaleproof.spec import registry
from scaleproof.transports.contract import OneSided, ShortMessages
from scaleproof.transports.verbs.one_sided_transfers import REQUEST_BYTES
from scaleproof.transports.verbs.rdma import Rdma
from tests.integration.conformance import mailbox_set, process_set
from tests.integration.conformance.checks import Checked, Checks, Messages
from tests.integration.rdma.checks import LARGE_REGION, ThisNode, check, connect
from tests.integration.rdma.faults import LOSS_S

COUNTERS = Path("/sys/class/infiniband/rxe0/ports/1/hw_counters")


@check
def conforms_with_2_ranks(this_node: ThisNode) -> None:
    _conforms(this_node, 2)


@check
def conforms_with_3_ranks(this_node: ThisNode) -> None:
    _conforms(this_node, 3)


@check
def conforms_with_a_rank_per_node(this_node: ThisNode) -> None:
    _conforms(this_node, this_node.nodes)


def _conforms(this_node: ThisNode, ranks: int) -> None:
    this_node.succeed(partial(process_set.check_everything, results=this_node.shared), ranks, 150, **LARGE_REGION)
    lines = [
        json.loads(line) for path in sorted(this_node.shared.glob("*.jsonl")) for line in path.read_text().splitlines()
    ]
    assert lines and not [f"{line['name']}: {line['detail']}" for line in lines if not line["passed"]][:10]


@check
def a_mailbox_conforms_with_3_ranks(this_node: ThisNode) -> None:
    _mailbox_conforms(this_node, 3)


@check
def a_mailbox_conforms_with_a_rank_per_node(this_node: ThisNode) -> None:
    _mailbox_conforms(this_node, this_node.nodes)


@check
def a_mailbox_whose_peer_dies_says_so(this_node: ThisNode) -> None:
    this_node.run(partial(mailbox_set.a_peer_dies, results=this_node.shared), 3, 60)
    outcomes = [json.loads(path.read_text()) for path in this_node.shared.glob("*.loss")]
    assert len(outcomes) == 2 and all(found == ["PeerLost"] * 3 for found, _ in outcomes), outcomes
    assert max(seconds for _, seconds in outcomes) < LOSS_S, outcomes


def _mailbox_conforms(this_node: ThisNode, ranks: int) -> None:
    this_node.succeed(partial(mailbox_set.check_mailbox, results=this_node.shared), ranks, 150, **LARGE_REGION)
    lines = [
        json.loads(line) for path in sorted(this_node.shared.glob("*.jsonl")) for line in path.read_text().splitlines()
    ]
    assert lines and not [f"{line['name']}: {line['detail']}" for line in lines if not line["passed"]][:10]


@check
def device_operations(this_node: ThisNode) -> None:
    this_node.succeed(_device_operations, 2)


def _device_operations(context: RankContext) -> None:
    transport, peer = connect(context), 1 - context.rank
    assert isinstance(transport, ShortMessages)
    device: OneSided = transport
    region = device.register(1 << 20)
    remote, own = device.remote(region, peer), region.local
    assert own is not None and not own.any()
    transport.barrier()
    for source in (transport.allocate(300_001), np.empty(300_001, np.uint8)):
        source[:] = context.rank + 1
        device.write(source, remote, 4096).wait()
        device.set_flag(remote, 70 + context.rank)
        device.wait_for(lambda: device.poll_flag(region, peer) == 70 + peer, peer)
        assert (own[4096 : 4096 + 300_001] == peer + 1).all() and not own[:4096].any()
        transport.barrier()
        own[:] = 0
        device.set_flag(remote, 0)
        device.wait_for(lambda: device.poll_flag(region, peer) == 0, peer)
        transport.barrier()
    for nbytes in (0, 64, 4096, 524_280):
        for source in (transport.allocate(nbytes), np.empty(nbytes, np.uint8)):
            source[:] = nbytes % 251 + context.rank
            handle = device.write_flagged(source, remote, 8, (1 << 40) + nbytes)
            device.wait_for(lambda at=8 + nbytes: device.poll_word(region, at) >= 1 << 40, peer)  # type: ignore[misc]
            handle.wait()
            assert (
                device.poll_word(region, 8 + nbytes) == (1 << 40) + nbytes
                and (own[8 : 8 + nbytes] == nbytes % 251 + peer).all()
            )
            transport.barrier()
            own[:] = 0
            transport.barrier()
    own[:] = np.arange(own.size) % 253
    transport.barrier()
    for target in (transport.allocate(400_000), np.empty(400_000, np.uint8)):
        device.read(remote, target, 1000).wait()
        assert (target == (np.arange(1000, 401_000) % 253).astype(np.uint8)).all()
    _notes(transport, peer)
    transport.close()
    transport.close()


def _notes(transport: Rdma, peer: int) -> None:
    for number in range(100):
        transport.post_message(bytes([number]) * (number + 1), peer)
    notes: list[bytes] = []

    def more() -> bool:
        while (note := transport.next_message(peer)) is not None:
            notes.append(note)
        return len(notes) == 100

    transport.wait_for(more, peer)
    assert notes == [bytes([number]) * (number + 1) for number in range(100)]


@check
def copies_and_requests_are_counted(this_node: ThisNode) -> None:
    """A registered message of 1 MiB is one write with immediate data and no copy; an unregistered one is copied once at
    each side."""
    this_node.succeed(_counted, 2)


def _counted(context: RankContext) -> None:
    transport, size = connect(context), 1 << 20
    inside, outside = transport.allocate(size), np.empty(size, np.uint8)
    for buffer, copied, requests in ((inside, 0, 1), (outside, size, 4)):
        transport.barrier()
        transport.operations.clear()
        transport.copies.clear()
        if context.rank == 0:
            transport.send(buffer, 1).wait()
            assert (transport.operations["write_with_imm"], transport.operations["write_with_imm bytes"]) == (
                requests,
                size,
            ), transport.operations
            assert transport.copies["staged to send"] == copied
        else:
            transport.recv(buffer, 0).wait()
            assert transport.copies["received"] == copied
            assert transport.operations["send"] in (requests, requests + 1), transport.operations
    transport.barrier()
    transport.close()


@check
def a_long_write_shows_progress(this_node: ThisNode) -> None:
    """By completions on its way: the watchdog takes a rank that waits and shows nothing for one that hangs."""

    def body(context: RankContext) -> None:
        transport, size = connect(context), REQUEST_BYTES + 4096
        region = transport.register(size)
        if context.rank == 0:
            source = transport.allocate(size)
            source[:] = 5
            before, requests = transport.mesh.moved(), -(-size // min(transport.device.max_message, REQUEST_BYTES))
            transport.write(source, transport.remote(region, 1)).wait()
            assert transport.operations["write"] - transport.operations["probe"] == requests > 1
            assert transport.mesh.moved() - before == requests
        transport.barrier()
        assert context.rank == 0 or (region.local == 5).all()  # type: ignore[union-attr]
        transport.close()

    this_node.succeed(body, 2, 30, **LARGE_REGION)


@check
def many_messages_never_overflow_a_queue(this_node: ThisNode) -> None:
    """Far more than the queues hold, before any receive is posted; credits hold the sender back and the device never
    has to."""
    before = (
        {name: int((COUNTERS / name).read_text()) for name in ("rcvd_rnr_err", "send_rnr_err")}
        if COUNTERS.exists()
        else {}
    )
    this_node.succeed(_flood, 2, **LARGE_REGION)
    assert all(int((COUNTERS / name).read_text()) == count for name, count in before.items()), before


def _flood(context: RankContext) -> None:
    transport, peer = connect(context), 1 - context.rank
    going = [np.full(700, number % 251, np.uint8) for number in range(400)]
    large = [np.full(40_000, number, np.uint8) for number in range(30)]
    sends = [transport.send(buffer, peer) for buffer in (*going, *large)]
    region = transport.register(8 * 300)
    writes = [
        transport.write(np.full(8, 1, np.uint8), transport.remote(region, peer), 8 * number) for number in range(300)
    ]
    received = [np.empty(700, np.uint8) for _ in going] + [np.empty(40_000, np.uint8) for _ in large]
    for handle in [transport.recv(buffer, peer) for buffer in received] + sends + writes:
        handle.wait()
    for sent, arrived in zip([*going, *large], received, strict=True):
        assert (sent == arrived).all()
    transport.barrier()
    assert region.local is not None and region.local.all()
    transport.close()


@check
def four_nodes_agree(this_node: ThisNode) -> None:
    """The conformance suite's checks that tell most, one type, every algorithm: all of them on four kernels would take
    minutes."""
    this_node.succeed(partial(_agree, results=this_node.shared), 4, 150, **LARGE_REGION)
    lines = [
        json.loads(line) for path in sorted(this_node.shared.glob("*.jsonl")) for line in path.read_text().splitlines()
    ]
    assert lines and not [f"{line['name']}: {line['detail']}" for line in lines if not line["passed"]][:10]


def _agree(context: RankContext, results: Path) -> None:
    transport = connect(context)
    with (results / f"{context.rank}.jsonl").open("w") as file:

        def keep(checked: Checked) -> None:
            file.write(json.dumps(asdict(checked)) + "\n")

        for name in registry.algorithms():
            checks = Checks(context, Group(transport, name), name, keep)
            for count in (1021, 65_537):
                checks.all_reduce("float32", count, "sum")
                checks.reduce_scatter("float32", count)
                checks.all_gather("float32", count)
                checks.broadcast("float32", count, 3)
            checks.same_bits_everywhere()
            checks.several_under_way()
            checks.barrier_waits()
        Messages(Checks(context, Group(transport, "ring"), process_set.MESSAGES, keep), transport).run()
        transport.barrier()
    transport.close()
