"""Messages that our TCP counts, beside the segments with data that the kernel counted on its sockets."""

from __future__ import annotations

import socket
import struct
from typing import Any

import numpy as np
import pytest

from scaleproof.collectives.group import Group
from scaleproof.core.context import RankContext
from scaleproof.rank.unsupervised_ranks import run_ranks
from scaleproof.transports.tcp import Tcp
from tests.short_form import ring_case

RETRANSMITTED, DATA_SEGMENTS_SENT = 100, 156
"""Where the kernel's struct tcp_info has tcpi_total_retrans and tcpi_data_segs_out, 4 bytes each."""
CALLS = 50


def segments_sent(transport: Tcp) -> int:
    """With data, each once, on all sockets of a rank since they were opened."""
    count = 0
    for connection in transport._connections.values():
        info = connection.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
        again, sent = (struct.unpack_from("I", info, place)[0] for place in (RETRANSMITTED, DATA_SEGMENTS_SENT))
        count += sent - again
    return count


@pytest.mark.parametrize("ranks", [2, 3])
def test_a_message_of_our_tcp_is_a_segment_on_a_socket(ranks: int) -> None:
    """Messages of 1 KiB fit a segment, and each waits for an answer, so that no two share one."""

    with socket.socket() as unused:
        if len(unused.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)) < DATA_SEGMENTS_SENT + 4:
            pytest.skip("this kernel does not count the segments with data of a socket")

    def body(context: RankContext) -> None:
        transport = Tcp.connect(context)
        group = Group(transport, "ring", context.post)
        buffer: Any = np.ones(256 * ranks, np.float32)
        group.barrier()
        counted, seen = transport.traffic.messages, segments_sent(transport)
        for _ in range(CALLS):
            group.all_reduce(buffer).wait()
            group.barrier()
        counted, seen = transport.traffic.messages - counted, segments_sent(transport) - seen
        group.close()
        assert counted == seen >= CALLS, f"{counted} messages, {seen} segments"

    assert run_ranks(ring_case(ranks=ranks, transport="tcp"), body) == [""] * ranks
