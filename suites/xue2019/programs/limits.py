"""Messages above a transport's limit: whether they fail, and the name of the failure. Option `what`:

grpc_default  a gRPC call with default settings of one byte more than 4 MiB, after one that fits
protobuf      a tensor of 2 GiB in TensorFlow's runtime, which exceeds protobuf's limit on a message
device        a tensor of `nbytes` by a mechanism of remote/ (`mechanism`): xue2019 reports that gRPC.RDMA fails from 1
              GB on
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from scaleproof.core.context import RankContext
from scaleproof.core.transport_errors import MessageTooLarge, TransportError
from scaleproof.programs.common import leave, mark
from scaleproof.programs.payload import differing, pattern
from scaleproof.remote.tensor_channel import Edge, shared_channel
from scaleproof.spec import registry
from scaleproof.spec.case import OwnCase

DEFAULT = 4 << 20
"""gRPC's default limit on the bytes of a message."""
PROTOBUF = 1 << 31
ITEM = 4
CALL_S = 30.0


def run(context: RankContext) -> None:
    """See the module; records whether the attempt failed, and the name of the failure."""
    case = context.case
    assert isinstance(case, OwnCase)
    attempt = {"grpc_default": _grpc_default, "protobuf": _protobuf, "device": _device}[str(case.options["what"])]
    mark(context, "start", 0)
    with context.recorder.span("attempt", 0):
        failure = attempt(context, case)
    mark(context, "end", 0)
    context.facts["found"] = {
        "fails" if case.options["what"] == "device" else "refused": float(failure is not None),
        "as": failure or "nothing failed",
    }


def _grpc_default(context: RankContext, case: OwnCase) -> str | None:
    """Rank 0 is both server and client."""
    if context.rank:
        return None
    import grpc

    threads = ThreadPoolExecutor(1)
    server = grpc.server(threads)
    handler = grpc.unary_unary_rpc_method_handler(lambda request, call: b"")
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("scaleproof.Limits", {"Take": handler}),))
    port = server.add_insecure_port(f"{context.address}:0")
    server.start()
    try:
        with grpc.insecure_channel(f"{context.address}:{port}", options=(("grpc.enable_http_proxy", 0),)) as channel:
            call = channel.unary_unary("/scaleproof.Limits/Take")
            context.check("fits", call(bytes(DEFAULT), timeout=CALL_S) == b"", f"{DEFAULT} bytes")
            return _refused(context, lambda: call(bytes(DEFAULT + 1), timeout=CALL_S), grpc)
    finally:
        server.stop(None).wait()
        threads.shutdown()


def _refused(context: RankContext, call: Any, grpc: Any) -> str | None:
    try:
        call()
    except grpc.RpcError as error:
        context.check("named", error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED, str(error.details()))
        return str(error.code().name)
    return None


def _protobuf(context: RankContext, case: OwnCase) -> str | None:
    from scaleproof.transports.tensorflow.session_server import check_size

    try:
        check_size(PROTOBUF)
    except MessageTooLarge as error:
        context.check("named", error.code == "message_too_large", str(error))
        return error.code
    return None


def _device(context: RankContext, case: OwnCase) -> str | None:
    """Sends one tensor, whose whole content is compared."""
    transport = registry.load("transport", str(case.transport)).connect(context)
    try:
        edge = Edge("tensor", 0, 1, (int(case.options["nbytes"]) // ITEM,))
        expected = pattern(edge.shape[0], "float32", 3)
        with shared_channel(case.options["mechanism"], transport, [edge], context) as channel:
            if context.rank == 0:
                tensor = channel.outgoing(edge)
                tensor[:] = expected
                channel.send(edge, tensor).wait()
            else:
                wrong = differing(channel.recv(edge).wait(), expected)
                channel.release(edge)
                context.check("content", not wrong, f"{wrong} elements differ")
    except TransportError as error:
        return str(getattr(error, "code", type(error).__name__))
    finally:
        leave(context, transport)
    return None
