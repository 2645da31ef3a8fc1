"""TensorFlow's own gRPC runtime: a tensor sent between two servers, parameter servers that lose a rank; what no
transport over gRPC can move."""

from __future__ import annotations

import os
import signal
import socket
import struct
import time
from pathlib import Path

import numpy as np
import pytest

from scaleproof.core.context import RankContext
from scaleproof.core.transport_errors import MessageTooLarge, PeerLost
from scaleproof.programs import train
from scaleproof.rank.unsupervised_ranks import run_ranks
from scaleproof.spec.errors import FieldError
from scaleproof.strategies.base import Strategy
from scaleproof.strategies.sync import Sync
from scaleproof.strategies.tensorflow_parameter_server import TensorflowParameterServer
from scaleproof.transports import grpc
from scaleproof.transports.tensorflow import bind_redirect
from scaleproof.transports.tensorflow.session_server import HeldTensor, SessionServer
from scaleproof.transports.tensorflow.tensorflow_server import LIMIT, check_size
from tests.integration._training import case_of
from tests.short_form import case_from
from tests.stand_in import stand_in

TWO = {"suite": "test", "experiment": "test", "arm": "test", "program": "transfer", "ranks": 2, "sizes": [8]}
BEYOND_DEFAULT = 5 << 20
"""Bytes: more than the 4 MiB that gRPC receives unless told otherwise."""
LOSS_S = 5.0


def test_a_tensor_is_pulled_from_the_server_that_holds_it_and_reduced_at_the_receiver(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("tensorflow")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")  # would take even connections to the own address

    def body(context: RankContext) -> None:
        servers = SessionServer(context)
        tensor = HeldTensor(servers, owner=0)
        divided = HeldTensor(servers, owner=0, pieces=3) if context.rank == 1 else tensor
        for elements in (1, BEYOND_DEFAULT // 4):
            values = np.arange(elements, dtype=np.float32)
            if context.rank == 0:
                tensor.put(values)
            context.rendezvous.exchange(f"put.{elements}", context.rank, context.world_size, True)
            if context.rank == 1:
                for held in (tensor, divided) if elements > 1 else (tensor,):
                    assert held.reduce_max() == values[-1]
                    assert np.array_equal(held.pull(), values)
            context.rendezvous.exchange(f"done.{elements}", context.rank, context.world_size, True)
        assert context.facts["tuning"]["recv_buf_max_chunk_bytes"] > 0
        with pytest.raises(MessageTooLarge), servers.calling():
            raise servers.tf.errors.InternalError(
                None, None, "Cannot encode a Tensor that exceeds the 2GB protobuf limit. Exceeded bytes: 4096"
            )
        with (
            pytest.raises(PeerLost),
            servers.calling(),
        ):  # what the others see when rank 0 of a strategy with workers was stopped
            raise servers.tf.errors.DeadlineExceededError(
                None, None, "aborted by: Deadline Exceeded\n\nRPC: /tensorflow.CoordinationService/Heartbeat"
            )
        servers.close()

    assert run_ranks(case_from(TWO | {"transport": "tensorflow-grpc"}), body) == ["", ""]


@pytest.mark.parametrize(
    ("transport", "strategy", "dying"),
    [
        ("tensorflow-grpc", TensorflowParameterServer, 1),
        ("tensorflow-mirrored", Sync, 1),
        ("tensorflow-mirrored", Sync, 0),
    ],
)
def test_a_rank_that_dies_in_training_ends_the_others_at_once(
    transport: str, strategy: type[Strategy], dying: int, tmp_path: Path
) -> None:
    pytest.importorskip("tensorflow")
    name = strategy.__module__.rpartition(".")[2]

    class Mortal(strategy):  # type: ignore[misc,valid-type]
        def begin(self, step: int) -> None:
            super().begin(step)
            if step == 3 and self.context.rank == dying:
                (tmp_path / "died").write_text(str(time.monotonic()))
                os.kill(os.getpid(), signal.SIGKILL)

    def body(context: RankContext) -> None:
        with pytest.raises(PeerLost, match="(?i)connect|closed"), pytest.MonkeyPatch.context() as patch:
            stand_in(patch, "strategy", name, Mortal)
            train.run(context)
        (tmp_path / "told").write_text(str(time.monotonic()))

    case = case_of(ranks=2, transport=transport, strategy=name, framework="tensorflow", steps=1000)
    assert run_ranks(case, body)[1 - dying] == ""
    assert float((tmp_path / "told").read_text()) - float((tmp_path / "died").read_text()) < LOSS_S


@pytest.mark.parametrize("nbytes", [2**31 - 1, 2**31, 2**40])
def test_a_tensor_that_no_message_can_carry_is_refused_before_it_is_tried(nbytes: int) -> None:
    check_size(1 << 30)
    with pytest.raises(MessageTooLarge, match=f"{nbytes} bytes does not fit .* {LIMIT}") as caught:
        check_size(nbytes)
    assert caught.value.code == "message_too_large"


def test_a_message_above_the_default_limit_of_grpc_travels_in_chunks() -> None:
    def body(context: RankContext) -> None:
        transport = grpc.Grpc.connect(context)
        message = np.random.default_rng(1).integers(0, 256, BEYOND_DEFAULT, dtype=np.uint8)
        buffer = message if context.rank == 0 else np.empty_like(message)
        (transport.send if context.rank == 0 else transport.recv)(buffer, 1 - context.rank).wait()
        assert np.array_equal(buffer, message)
        assert context.facts["tuning"]["chunk_bytes"] < BEYOND_DEFAULT
        transport.barrier()
        transport.close()

    assert run_ranks(case_from(TWO | {"transport": "grpc", "collective": "ring"}), body) == ["", ""]


def test_a_limit_below_a_chunk_is_named_before_anything_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grpc, "OPTIONS", (("grpc.max_receive_message_length", 4096),))

    def body(context: RankContext) -> None:
        with pytest.raises(MessageTooLarge, match="4096 bytes per message; use smaller chunks"):
            grpc.Grpc.connect(context)

    assert run_ranks(case_from(TWO | {"transport": "grpc", "collective": "ring"}), body) == ["", ""]


def test_servers_belong_to_a_strategy_that_has_some_and_to_the_transport_that_runs_them() -> None:
    with pytest.raises(Exception, match="strategy 'sync' has no option 'servers'") as caught:
        case_of(ranks=2, transport="shm", collective="ring", strategy={"name": "sync", "servers": 1})
    assert isinstance(caught.value.errors()[0]["ctx"]["error"], FieldError)  # type: ignore[attr-defined]
    with pytest.raises(Exception, match="servers of transport 'tensorflow-grpc'"):
        case_of(ranks=2, transport="shm", collective="ring", strategy="tensorflow_parameter_server")


def sockaddr_of(family: socket.AddressFamily, port: int, address: str) -> bytes:
    """A sockaddr as the kernel takes it."""
    packed = socket.inet_pton(family, address)
    return (
        struct.pack("=H", family)
        + struct.pack("!H", port)
        + (packed + bytes(8) if family == socket.AF_INET else bytes(4) + packed + bytes(4))
    )


@pytest.mark.parametrize(
    ("sockaddr", "expected"),
    [
        (sockaddr_of(socket.AF_INET6, 70, "::"), sockaddr_of(socket.AF_INET6, 70, "::ffff:127.0.0.1")),
        (sockaddr_of(socket.AF_INET, 70, "0.0.0.0"), sockaddr_of(socket.AF_INET, 70, "127.0.0.1")),
        (sockaddr_of(socket.AF_INET, 71, "0.0.0.0"), sockaddr_of(socket.AF_INET, 71, "0.0.0.0")),
        (sockaddr_of(socket.AF_INET6, 70, "::1"), sockaddr_of(socket.AF_INET6, 70, "::1")),
        (struct.pack("=H", socket.AF_UNIX) + b"/tmp/x\0", struct.pack("=H", socket.AF_UNIX) + b"/tmp/x\0"),
    ],
)
def test_only_the_wildcard_of_the_own_port_becomes_the_one_address(sockaddr: bytes, expected: bytes) -> None:
    assert bind_redirect._specific(sockaddr, "127.0.0.1", 70) == expected
