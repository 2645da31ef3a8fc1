"""A step with parameter servers in the event engine: gradients go to the server of their parameter, which sums and
updates them and sends the parameters back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from scaleproof.simulate.cost_model import MessageCosts
from scaleproof.simulate.engine.engine import Engine
from scaleproof.simulate.link_network import Network
from scaleproof.simulate.server_threads import Threads
from scaleproof.simulate.shared_cores import SharedCores


@dataclass(frozen=True, slots=True)
class Tensor:
    """A parameter's bytes and the rank that serves it."""

    nbytes: float
    owner: int


@dataclass(frozen=True, slots=True)
class Update:
    """The n-th update of every rank that is a server; others have one of no length at their end."""

    start: np.ndarray
    end: np.ndarray


@dataclass(frozen=True, slots=True)
class Served:
    """Tasks per rank: after which it has each parameter, after which it has finished, and its updates."""

    received: dict[int, np.ndarray]
    end: np.ndarray
    updates: list[Update]


class Serving:
    """Adds the tasks of such steps. Messages of a pair of ranks move one after the other, in both directions apart.
    `own_process`: a server does not wait for the backward pass of the worker beside it; `cores`: those that messages
    share with what is computed, if they do."""

    def __init__(
        self,
        engine: Engine,
        network: Network,
        nodes: Sequence[int],
        costs: MessageCosts,
        tensors: Sequence[Tensor],
        update_s: float,
        own_process: bool = False,
        cores: SharedCores | None = None,
    ) -> None:
        self._engine, self._nodes, self._costs = engine, list(nodes), costs
        self._threads = Threads(engine, network, costs, cores)
        self._tensors, self.ranks, self._own_process = tensors, len(nodes), own_process
        total = sum(tensor.nbytes for tensor in tensors)
        self._update_s = [update_s * tensor.nbytes / total if total else 0.0 for tensor in tensors]
        self._connections: dict[tuple[int, int], tuple[int, int]] = {}

    def nbytes(self, index: int) -> float:
        """Bytes of a parameter."""
        return self._tensors[index].nbytes

    def push_s(self, index: int) -> np.ndarray:
        """s of each rank's main thread to hand a gradient over; its own server has none to hand over."""
        tensor, costs = self._tensors[index], self._costs
        byte = costs.on("one_link").sending.byte if costs.tensors.push else 0.0
        return np.where(np.arange(self.ranks) == tensor.owner, 0.0, costs.tensors.push + byte * tensor.nbytes)

    @property
    def _main_s_per_byte(self) -> float:
        """What a byte takes of a server's main thread, which takes it and gives it back; tensors of few bytes were
        fitted."""
        costs = self._costs.on("one_link")
        return costs.sending.byte + costs.receiving.byte if self._costs.tensors.serve else 0.0

    def begin_s(self) -> np.ndarray:
        """s of each rank's main thread before a step: a server waits for a gradient of each of its parameters from each
        worker."""
        served = np.bincount([tensor.owner for tensor in self._tensors], minlength=self.ranks)
        return self._costs.tensors.begin * served * (self.ranks - 1)

    def add(
        self, pushed: Mapping[int, np.ndarray], began: np.ndarray, finish: np.ndarray, factors: np.ndarray
    ) -> Served:
        """A step. `pushed`: tasks after which each rank has the gradient of each parameter; `began` and `finish`: after
        which each rank's step has begun, and its backward pass has ended, which a worker that serves waits for;
        `factors`: of each rank's computing."""
        last_update = (began if self._own_process else finish).copy()
        received: dict[int, np.ndarray] = {}
        updates: list[list[tuple[int, int]]] = [[] for _ in range(self.ranks)]
        sent: list[tuple[np.ndarray, np.ndarray]] = []
        for index, ready in pushed.items():
            owner = self._tensors[index].owner
            workers = np.array([rank for rank in range(self.ranks) if rank != owner], np.int64)
            sends, arrived = self._exchange(workers, np.repeat(owner, len(workers)), index)
            self._engine.after(sends, ready[workers])
            sent.append((workers, sends))
            before = np.append(arrived, [ready[owner], last_update[owner]])
            start, end = self._update(index, before, float(factors[owner]))
            updates[owner].append((start, end))
            last_update[owner] = end
            back, received_back = self._exchange(np.repeat(owner, len(workers)), workers, index)
            self._engine.after(back, np.repeat(end, len(workers)))
            sent.append((np.repeat(owner, len(workers)), back))
            received[index] = np.full(self.ranks, end)
            received[index][workers] = received_back
        finished = self._end([finish, last_update, *received.values()], sent)
        return Served(received, finished, self._turns(updates, finished))

    def _update(self, index: int, earlier: np.ndarray, factor: float) -> tuple[int, int]:
        """Sums the gradients of a parameter, the owner's too, then updates it: a task each, after these."""
        nbytes = self._tensors[index].nbytes
        serving = self._costs.tensors.serve + (self._costs.gamma + self._main_s_per_byte) * nbytes
        summed = self._engine.work(self._threads.inside(nbytes) + serving * (self.ranks - 1))
        self._engine.after(np.repeat(summed, len(earlier)), earlier)
        updated = self._engine.work(self._update_s[index] * factor)
        self._engine.after(updated, summed)
        return int(summed[0]), int(updated[0])

    def _exchange(self, sources: np.ndarray, destinations: np.ndarray, index: int) -> tuple[np.ndarray, np.ndarray]:
        """A message of a parameter for each pair of ranks: sends and receives."""
        count, nbytes = len(sources), float(self._tensors[index].nbytes)
        pairs = list(zip(sources.tolist(), destinations.tolist(), strict=True))
        moved = [
            self._threads.move(source, destination, (self._nodes[source], self._nodes[destination]), nbytes)
            for source, destination in pairs
        ]
        boxes, (streams, lanes) = self._engine.boxes(count), self._connected(pairs)
        sends = self._engine.send(
            boxes,
            sources,
            np.array([each.route for each in moved]),
            nbytes,
            count=count,
            highest=np.array([each.highest for each in moved]),
            delay=np.array([each.delay for each in moved]),
            stream=streams,
            lane=lanes,
        )
        return sends, self._engine.receive(boxes, sources, count=count)

    def _connected(self, pairs: Sequence[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
        """Streams and lanes of pairs: the messages of each are handed over one after the other."""
        new = [pair for pair in dict.fromkeys(pairs) if pair not in self._connections]
        streams, lanes = self._engine.streams(len(new)).tolist(), self._engine.lanes(len(new)).tolist()
        self._connections.update(zip(new, zip(streams, lanes, strict=True), strict=True))
        both = np.array([self._connections[pair] for pair in pairs], np.int64).reshape(-1, 2)
        return both[:, 0], both[:, 1]

    def _end(self, of_ranks: Sequence[np.ndarray], sent: Sequence[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
        """A task per rank after all of these, and after all that it sends."""
        ended = self._engine.work(0.0, count=self.ranks)
        for earlier in of_ranks:
            self._engine.after(ended, earlier)
        for sources, sends in sent:
            self._engine.after(ended[sources], sends)
        return ended

    def _turns(self, updates: list[list[tuple[int, int]]], last: np.ndarray) -> list[Update]:
        turns = []
        for turn in range(max(map(len, updates), default=0)):
            pairs = [
                mine[turn] if turn < len(mine) else (int(end), int(end))
                for mine, end in zip(updates, last.tolist(), strict=True)
            ]
            turns.append(Update(np.array([start for start, _ in pairs]), np.array([end for _, end in pairs])))
        return turns
