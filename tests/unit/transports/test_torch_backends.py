"""Back ends of torch.distributed that this torch may lack: their reasons, and results copied back from device
memory."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from scaleproof.core.context import RankContext
from scaleproof.core.transport_errors import TransportError
from scaleproof.launch.preflight.case_preflight import obstacle
from scaleproof.rank.unsupervised_ranks import run_ranks
from scaleproof.spec import registry
from scaleproof.transports.gloo import Gloo
from scaleproof.transports.nccl import Nccl
from tests.short_form import case_from

LACKING = {
    "nccl": ("without NCCL", "CUDA"),
    "torch-mpi": ("without MPI", "USE_MPI=1"),
    "ucc": ("without UCC", "USE_UCC=1"),
}


def case_of(transport: str, ranks: int = 2) -> Any:
    launcher = registry.get("transport", transport).launcher
    fields = {"suite": "t", "experiment": "t", "arm": "t", "program": "collective", "sizes": [8], "ranks": ranks}
    return case_from({**fields, "transport": transport, "launcher": launcher})


@pytest.mark.parametrize("name", LACKING)
def test_a_back_end_that_torch_lacks_says_how_to_get_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.distributed, "is_backend_available", lambda backend: False)
    registry._probed.cache_clear()
    availability = registry.availability("transport", name)
    registry._probed.cache_clear()
    why, advice = LACKING[name]
    assert (
        not availability.available
        and why in availability.why
        and torch.__version__ in availability.why
        and advice in availability.advice
    )


def test_nccl_without_a_gpu_is_unavailable_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.distributed, "is_backend_available", lambda backend: True)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    registry._probed.cache_clear()
    availability = registry.availability("transport", "nccl")
    registry._probed.cache_clear()
    assert availability.why == "there is no GPU that torch can use"


def test_a_case_with_a_missing_back_end_is_not_runnable_here() -> None:
    if registry.availability("transport", "ucc").available:
        pytest.skip("this torch has UCC")
    missing = obstacle(case_of("ucc"))
    assert missing is not None
    assert missing.reason.startswith("transport ucc: torch") and "USE_UCC=1" in missing.advice


class Staged(Gloo):
    """Works on copies, like a back end on a GPU."""

    def lend(self, tensor: Any) -> Any:
        return tensor.clone()


def test_results_come_back_from_the_memory_that_a_back_end_works_in() -> None:
    def body(context: RankContext) -> None:
        transport, rank = Staged.connect(context), context.rank
        total, parts, gathered, received = (
            np.full(3, rank + 1, np.float32),
            np.zeros(1, np.float32),
            np.zeros(2, np.int64),
            np.zeros(4, np.uint8),
        )
        transport.all_reduce(total).wait()
        transport.reduce_scatter(np.arange(2, dtype=np.float32), parts).wait()
        transport.all_gather(np.array([rank + 7]), gathered).wait()
        transport.broadcast(broadcast := np.full(2, rank, np.int32), 1).wait()
        sent = transport.send(np.full(4, rank, np.uint8), 1 - rank)
        transport.recv(received, 1 - rank).wait()
        sent.wait()
        assert [array.tolist() for array in (total, parts, gathered, broadcast, received)] == [
            [3, 3, 3],
            [2 * rank],
            [7, 8],
            [1, 1],
            [1 - rank] * 4,
        ]
        transport.close()

    assert run_ranks(case_of("gloo"), body) == ["", ""]


@pytest.mark.parametrize(
    ("rank", "nodes", "gpus", "device"), [(0, 1, 2, 0), (1, 1, 2, 1), (3, 2, 2, 1), (2, 2, 1, 0), (1, 1, 1, None)]
)
def test_every_rank_of_a_node_takes_a_gpu_of_its_own(
    rank: int, nodes: int, gpus: int, device: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[int] = []
    nccl: Any = object.__new__(Nccl)
    nccl._torch = SimpleNamespace(cuda=SimpleNamespace(device_count=lambda: gpus, set_device=taken.append))
    context: Any = SimpleNamespace(rank=rank, world_size=2 * nodes, case=SimpleNamespace(nodes=nodes, interface="lo"))
    monkeypatch.setenv("NCCL_SOCKET_IFNAME", "")
    if device is None:
        with pytest.raises(TransportError, match="rank 1 is number 2 here, and there are 1"):
            nccl.prepare(context)
    else:
        nccl.prepare(context)
        assert taken == [device]
