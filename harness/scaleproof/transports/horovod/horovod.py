"""Horovod over Gloo, without ssh: rank 0 serves its rendezvous while the ranks join. The binding (torch or TensorFlow)
follows the case's framework."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

from scaleproof.spec.plugins import TransportPlugin
from scaleproof.transports.horovod.framework_bindings import Binding, translated_errors
from scaleproof.transports.horovod.horovod_transport import (
    HorovodOptions,
    HorovodTransport,
    built_without,
    check_fusion,
)

if TYPE_CHECKING:
    from scaleproof.core.context import RankContext

JOIN_S = 60
"""How long ranks may take to join."""


class Horovod(HorovodTransport):
    """To Horovod all ranks are on one host, that of rank 0, also with several nodes. The rendezvous server runs only
    until all have joined."""

    OPERATIONS = "Gloo"

    def _path(self) -> Literal["socket"]:
        return "socket"

    def _join(self, context: RankContext, binding: Binding) -> None:
        with _served(context) as (host, port):
            ranks = {
                "RANK": context.rank,
                "SIZE": context.world_size,
                "LOCAL_RANK": context.rank,
                "LOCAL_SIZE": context.world_size,
                "CROSS_RANK": 0,
                "CROSS_SIZE": 1,
            }
            gloo = {
                "GLOO_RENDEZVOUS_ADDR": host,
                "GLOO_RENDEZVOUS_PORT": port,
                "GLOO_IFACE": context.case.interface,
                "GLOO_TIMEOUT_SECONDS": JOIN_S,
            }
            choice = {"CONTROLLER": "gloo", "CPU_OPERATIONS": "gloo", "HOSTNAME": host}
            os.environ.update({f"HOROVOD_{name}": str(value) for name, value in (ranks | gloo | choice).items()})
            context.post.wait()
            with translated_errors():
                binding.init()
            context.post.stop_waiting()
            # The server ends when every rank has joined.
            context.rendezvous.exchange("horovod.joined", context.rank, context.world_size, True)


@contextmanager
def _served(context: RankContext) -> Iterator[tuple[str, int]]:
    """Address and port of the rendezvous server, which rank 0 runs. Horovod's own launcher binds every interface; this
    server binds the fabric's."""
    if context.rank != 0:
        host, port = context.rendezvous.get("horovod.server")
        yield host, port
        return
    from horovod.runner.common.util.hosts import get_host_assignments, parse_hosts
    from horovod.runner.http.http_server import RendezvousHandler, RendezvousHTTPServer

    server = RendezvousHTTPServer((context.address, 0), RendezvousHandler, 0)
    server.daemon_threads = True
    server.init(get_host_assignments(parse_hosts(f"{context.address}:{context.world_size}"), context.world_size))
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.02}, name="horovod rendezvous", daemon=True
    )
    thread.start()
    try:
        context.rendezvous.publish("horovod.server", [context.address, server.server_address[1]])
        yield context.address, server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


PLUGIN = TransportPlugin(
    name="horovod",
    summary="Horovod over Gloo, torch or TensorFlow binding",
    implementation=Horovod,
    requires=("horovod",),
    needs_framework="torch",
    check_installation=built_without,
    options=HorovodOptions,
    check=check_fusion,
    axis="No-gRPC:Horovod-GLOO",
    sends=False,
    no_mailbox="it has no sends and receives",
    stated_costs="horovod.costs.yaml",
    colour="sky",
    marker="P",
)
