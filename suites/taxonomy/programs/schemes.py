"""The schemes as messages between n workers, each with a gradient and parameters of the same size. Some schemes have a
server on the next rank."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

from scaleproof.transports.contract import Array, Handle, PointToPoint

ROUNDS = {"async_all_workers": 5}
"""Rounds per sample, if not one: an asynchronous server fills its link only across rounds."""
POLL_S = 1e-4
"""Pause between looks for an arrival, a thousandth of what a gradient takes on its link."""


class Exchange:
    """One rank's side of an exchange, which may overwrite `gradient` and writes its result to `parameters`."""

    def __init__(
        self, transport: PointToPoint, workers: int, elements: int, update: Callable[[Array, Array], None]
    ) -> None:
        self.transport, self.workers, self.update = transport, workers, update
        self.rank, self.server = transport.rank, workers
        self.is_server = self.rank == workers
        self.gradient, self.parameters = np.zeros(elements, np.float32), np.zeros(elements, np.float32)
        self.arrivals = [np.zeros(elements, np.float32) for _ in range(workers)]
        self.bounds = [part * elements // workers for part in range(workers + 1)]

    def part(self, array: Array, number: int) -> Array:
        """Part `number` of a model that is divided over the workers."""
        return array[self.bounds[number] : self.bounds[number + 1]]

    @property
    def others(self) -> list[int]:
        """The other workers, starting with the next one, so that workers do not all send to the same one."""
        return [(self.rank + step) % self.workers for step in range(1, self.workers)]

    def wait(self, handles: Sequence[Handle]) -> None:
        """Wait for all handles."""
        for handle in handles:
            handle.wait()

    def scatter_reduce(self) -> None:
        """Every worker gets the sum of its part."""
        own = self.part(self.gradient, self.rank)
        arriving = {other: self.part(self.arrivals[other], self.rank) for other in self.others}
        handles = [self.transport.recv(array, other) for other, array in arriving.items()]
        handles += [self.transport.send(self.part(self.gradient, other), other) for other in self.others]
        self.wait(handles)
        for array in arriving.values():
            np.add(own, array, out=own)

    def gather(self, array: Array) -> None:
        """Every worker gets all parts of the array."""
        own = self.part(array, self.rank)
        handles = [self.transport.recv(self.part(array, other), other) for other in self.others]
        self.wait(handles + [self.transport.send(own, other) for other in self.others])


def naive_sync_ps(exchange: Exchange) -> None:
    """Whole gradients go to the server, whole parameters go to all workers."""
    transport = exchange.transport
    if not exchange.is_server:
        transport.send(exchange.gradient, exchange.server).wait()
        transport.recv(exchange.parameters, exchange.server).wait()
        return
    handles = [transport.recv(array, worker) for worker, array in enumerate(exchange.arrivals)]
    exchange.wait(handles)
    for array in exchange.arrivals[1:]:
        np.add(exchange.arrivals[0], array, out=exchange.arrivals[0])
    exchange.update(exchange.parameters, exchange.arrivals[0])
    exchange.wait([transport.send(exchange.parameters, worker) for worker in range(exchange.workers)])


def binomial_tree(exchange: Exchange) -> None:
    """Workers and server form a binomial tree with the server as its root: whole gradients are summed on the way up,
    whole parameters come down."""
    transport, size = exchange.transport, exchange.workers + 1
    position = (exchange.rank + 1) % size
    total, waiting = exchange.gradient, []
    if exchange.is_server:
        total.fill(0)
    distance = 1
    while distance < size:
        if position % (2 * distance):
            transport.send(total, _rank(position - distance, size)).wait()
            break
        if position + distance < size:
            waiting.append(position + distance)
            transport.recv(exchange.arrivals[0], _rank(position + distance, size)).wait()
            np.add(total, exchange.arrivals[0], out=total)
        distance *= 2
    if exchange.is_server:
        exchange.update(exchange.parameters, total)
    else:
        transport.recv(exchange.parameters, _rank(position - distance, size)).wait()
    for child in reversed(waiting):
        transport.send(exchange.parameters, _rank(child, size)).wait()


def _rank(position: int, size: int) -> int:
    """The root has position 0 and is the last rank."""
    return (position - 1) % size


def scatter_reduce_bcast_single_ps(exchange: Exchange) -> None:
    """Each worker reduces one part; the server receives the parts, updates, and returns parts of the parameters; the
    workers exchange their parts."""
    transport = exchange.transport
    if exchange.is_server:
        handles = [
            transport.recv(exchange.part(exchange.gradient, worker), worker) for worker in range(exchange.workers)
        ]
        exchange.wait(handles)
        exchange.update(exchange.parameters, exchange.gradient)
        exchange.wait(
            [transport.send(exchange.part(exchange.parameters, worker), worker) for worker in range(exchange.workers)]
        )
        return
    exchange.scatter_reduce()
    transport.send(exchange.part(exchange.gradient, exchange.rank), exchange.server).wait()
    transport.recv(exchange.part(exchange.parameters, exchange.rank), exchange.server).wait()
    exchange.gather(exchange.parameters)


def async_per_worker(exchange: Exchange) -> None:
    """Only one worker exchanges while the others compute."""
    if exchange.is_server:
        _serve(exchange, {0: 1})
    elif exchange.rank == 0:
        _request(exchange)


def async_all_workers(exchange: Exchange) -> None:
    """All workers, for several rounds, each at its own pace: nobody waits for another worker's turn."""
    rounds = ROUNDS["async_all_workers"]
    if exchange.is_server:
        _serve(exchange, dict.fromkeys(range(exchange.workers), rounds))
    else:
        for _ in range(rounds):
            _request(exchange)


def _request(exchange: Exchange) -> None:
    exchange.transport.send(exchange.gradient, exchange.server).wait()
    exchange.transport.recv(exchange.parameters, exchange.server).wait()


def _serve(exchange: Exchange, rounds: dict[int, int]) -> None:
    """Serves `rounds` gradients of each worker in the order in which they arrive. Parameters go back at once, while
    gradients of others arrive."""
    transport, left = exchange.transport, dict(rounds)
    arriving = {worker: transport.recv(exchange.arrivals[worker], worker) for worker in left}
    replies = {worker: np.empty_like(exchange.parameters) for worker in left}
    going: dict[int, Handle] = {}
    while arriving:
        arrived = [worker for worker, handle in arriving.items() if handle.test()]
        if not arrived:
            time.sleep(POLL_S)
        for worker in arrived:
            exchange.update(exchange.parameters, exchange.arrivals[worker])
            if worker in going:
                going.pop(worker).wait()  # the worker had these parameters before it sent this gradient
            np.copyto(replies[worker], exchange.parameters)
            going[worker] = transport.send(replies[worker], worker)
            left[worker] -= 1
            del arriving[worker]
            if left[worker]:
                arriving[worker] = transport.recv(exchange.arrivals[worker], worker)
    exchange.wait(list(going.values()))


def sharded_ps_k_eq_n_sync(exchange: Exchange) -> None:
    """Every worker serves a part of the model."""
    exchange.scatter_reduce()
    exchange.update(exchange.part(exchange.parameters, exchange.rank), exchange.part(exchange.gradient, exchange.rank))
    exchange.gather(exchange.parameters)


def recursive_doubling(exchange: Exchange) -> None:
    """Exchanges whole gradients with a partner, whose distance doubles in every round; needs 2^k workers."""
    distance = 1
    while distance < exchange.workers:
        partner = exchange.rank ^ distance
        handle = exchange.transport.recv(exchange.arrivals[0], partner)
        exchange.wait([exchange.transport.send(exchange.gradient, partner), handle])
        np.add(exchange.gradient, exchange.arrivals[0], out=exchange.gradient)
        distance *= 2
    exchange.update(exchange.parameters, exchange.gradient)


def ring(exchange: Exchange) -> None:
    """Parts travel around the ring, first to be summed, then to be gathered."""
    workers, after, before = (
        exchange.workers,
        (exchange.rank + 1) % exchange.workers,
        (exchange.rank - 1) % exchange.workers,
    )
    for step in range(2 * (workers - 1)):
        out, arriving = (exchange.rank - step) % workers, (exchange.rank - step - 1) % workers
        adds = step < workers - 1
        target = exchange.part(exchange.arrivals[0] if adds else exchange.gradient, arriving)
        handle = exchange.transport.recv(target, before)
        exchange.wait([exchange.transport.send(exchange.part(exchange.gradient, out), after), handle])
        if adds:
            total = exchange.part(exchange.gradient, arriving)
            np.add(total, target, out=total)
    exchange.update(exchange.parameters, exchange.gradient)


SCHEMES: dict[str, Callable[[Exchange], None]] = {
    scheme.__name__: scheme
    for scheme in (
        naive_sync_ps,
        binomial_tree,
        scatter_reduce_bcast_single_ps,
        async_per_worker,
        async_all_workers,
        sharded_ps_k_eq_n_sync,
        recursive_doubling,
        ring,
    )
}
SERVED = ("naive_sync_ps", "binomial_tree", "scatter_reduce_bcast_single_ps", "async_per_worker", "async_all_workers")
"""Schemes with a separate server rank."""
