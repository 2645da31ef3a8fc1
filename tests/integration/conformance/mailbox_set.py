"""What every rank of one process set does to prove its transport's mailbox. Results go to a file, line by line, so that
a hang shows how far it came."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from scaleproof.core.context import RankContext
from scaleproof.core.transport_errors import PeerLost, TransportError
from scaleproof.rank_programs.collectives import barrier
from scaleproof.rank_programs.effects import Send
from scaleproof.spec import registry
from scaleproof.spec.plugins import loaded
from scaleproof.transports import one_sided_mailbox
from scaleproof.transports.mailbox import ANY, Mailbox, Message, Posted
from tests.integration.conformance.process_set import listening

SIZES = (0, 1, 5, 99, 100, 101, 4096, 300_001, 3 << 20)
"""Bytes of the messages that every rank sends every other: around what goes with a head, and beyond every buffer."""
LARGE = 8 << 20
REGION = 50_000
"""Elements of a region of float64."""
DATA, CALM, CANCELLED, NEXT, APART, LATE = range(6)
"""Tags."""
TORN_S = 0.7
"""How long a rank puts as fast as it can while others get."""
SWAPS, COUNTS = 25, 150
LOSS_S = 15.0


@dataclass(frozen=True, slots=True)
class Checked:
    """One result of one rank."""

    name: str
    passed: bool
    detail: str


def opened(context: RankContext) -> Mailbox:
    """The mailbox of the case's transport."""
    mailbox: Mailbox = loaded(registry.get("transport", context.case.transport or "").mailbox or "")(context)
    return mailbox


def check_mailbox(context: RankContext, results: Path) -> None:
    """Run all checks; results in `results/<rank>.jsonl`."""
    with (results / f"{context.rank}.jsonl").open("w", buffering=1) as file:
        threads, ports = set(threading.enumerate()), listening()
        checks = MailboxChecks(context, opened(context), lambda checked: file.write(json.dumps(asdict(checked)) + "\n"))
        checks.run()
        checks.mailbox.abandon()
        left = [thread for thread in threading.enumerate() if thread not in threads and thread.is_alive()]
        for thread in left:
            thread.join(2)
        checks.record("no thread left", not any(map(threading.Thread.is_alive, left)), f"left {left}")
        checks.record("no port left", not listening() - ports, f"left {listening() - ports}")
        checks.record("no child left", not psutil.Process().children(), f"left {psutil.Process().children()}")


def a_peer_dies(context: RankContext, results: Path) -> None:
    """The last rank kills itself."""
    _wait_for_the_last(context, results, lambda mailbox: os.kill(os.getpid(), signal.SIGKILL))


def a_peer_leaves(context: RankContext, results: Path) -> None:
    """The last rank fails, and abandons its mailbox."""
    _wait_for_the_last(context, results, lambda mailbox: mailbox.abandon())


def outlive_a_peer(context: RankContext, results: Path) -> None:
    """The last rank kills itself, as a fault of the case says: the others go on without it, and close."""
    mailbox, last = opened(context), context.world_size - 1
    mailbox.mortal = frozenset({last})
    mailbox.open(lambda source, name, value: value + 1, {"x": np.zeros(8)})
    go_through(barrier(context.rank, context.world_size), mailbox)
    context.rendezvous.exchange("test.all have gone through", context.rank, context.world_size, True)
    if context.rank == last:
        os.kill(os.getpid(), signal.SIGKILL)
    other = 1 - context.rank
    waits: list[Callable[[], Any]] = [
        lambda: mailbox.receive(last, DATA),
        lambda: mailbox.receive(ANY, DATA),
        lambda: mailbox.call(np.zeros(3), last, "next"),
    ]
    outcomes = []
    for number, wait in enumerate(waits):
        try:
            wait()
            outcomes.append("no error")
        except PeerLost as lost:
            outcomes.append(f"lost {lost.peer}")
        mailbox.send(np.full(SIZES[-1], number, np.uint8), other, NEXT)
        arrived = mailbox.receive(other, NEXT)
        answer = mailbox.call(np.full(SIZES[-2], number, np.int32), other, "next")
        assert arrived is not None and set(arrived.value.tolist()) == {number} == set((answer - 1).tolist())
    mailbox.close()
    (results / f"{context.rank}.outlived").write_text(json.dumps(outcomes))


def _wait_for_the_last(context: RankContext, results: Path, leave: Callable[[Mailbox], None]) -> None:
    """All others wait for it, in three ways, and write down what came of it and after how many seconds."""
    mailbox, last, start = opened(context), context.world_size - 1, time.monotonic()
    mailbox.open(lambda source, name, value: value, {"x": np.zeros(8)})
    go_through(barrier(context.rank, context.world_size), mailbox)
    context.rendezvous.exchange("test.all have gone through", context.rank, context.world_size, True)
    if context.rank == last:
        try:
            raise SystemExit("left early, as the test wants it")
        finally:
            leave(mailbox)
    waits: list[Callable[[], Any]] = [
        lambda: mailbox.receive(last, DATA),
        lambda: mailbox.receive(ANY, DATA),
        lambda: mailbox.get(last, "x", 0, 1),
    ]
    outcomes = []
    for wait in waits:
        try:
            wait()
            outcomes.append("no error")
        except TransportError as error:
            outcomes.append(type(error).__name__)
    (results / f"{context.rank}.loss").write_text(json.dumps([outcomes, time.monotonic() - start]))
    mailbox.abandon()


def go_through(effects: Iterator[Any], mailbox: Mailbox) -> None:
    """Carries out sends and receives of a generator."""
    result = None
    while True:
        try:
            effect = effects.send(result)  # type: ignore[attr-defined]
        except StopIteration:
            return
        if isinstance(effect, Send):
            mailbox.send(effect.value, effect.peer, effect.tag)
            result = None
        else:
            result = mailbox.receive(effect.source, effect.tag)


def message(source: int, destination: int, number: int) -> np.ndarray:
    """What a rank sends another as its n-th message."""
    generator = np.random.default_rng((source, destination, number))
    value: np.ndarray = generator.integers(0, 256, SIZES[number], dtype=np.uint8)
    return value.view("float32") if value.size % 4 == 0 else value


@contextmanager
def beside(*calls: Callable[[], Any]) -> Iterator[list[Any]]:
    """Calls in threads of their own; their results when the block has ended."""
    results: list[Any] = [None] * len(calls)

    def run(place: int) -> None:
        results[place] = calls[place]()

    threads = [threading.Thread(target=run, args=(place,), daemon=True) for place in range(len(calls))]
    for thread in threads:
        thread.start()
    yield results
    for thread in threads:
        thread.join(LOSS_S)
        assert not thread.is_alive(), "a thread waits for ever"


class MailboxChecks:
    """The checks of one rank."""

    def __init__(self, context: RankContext, mailbox: Mailbox, keep: Callable[[Checked], Any]) -> None:
        self.context, self.mailbox, self._keep = context, mailbox, keep
        self.rank, self.world_size = context.rank, context.world_size
        self.peers = [peer for peer in range(self.world_size) if peer != self.rank]
        self.right, self.left = (self.rank + 1) % self.world_size, (self.rank - 1) % self.world_size
        self.busy = False
        """Whether this rank computes or sleeps now: told to who calls."""
        self.region = mailbox.memory(8 * REGION).view(np.float64)
        self.plain, self.counter = np.zeros(4), mailbox.memory(8).view(np.int64)

    def run(self) -> None:
        """All of them, with a barrier between two."""
        self.mailbox.open(self.serve, {"x": self.region, "plain": self.plain, "counter": self.counter})
        for check in (
            self.messages_of_all_sizes,
            self.tags_are_apart,
            self.large_ones_cross,
            self.puts_and_flags,
            self.gets_are_whole,
            self.gets_in_pauses_are_whole,
            self.own_program_and_gets,
            self.swaps_exclude,
            self.receives_are_cancelled,
            self.barriers_are_apart,
            self.calls_of_who_is_busy,
            self.calls_of_who_has_ended,
        ):
            go_through(barrier(self.rank, self.world_size), self.mailbox)
            check()

    def serve(self, source: int, name: str, value: np.ndarray) -> np.ndarray:
        return np.array([self.busy]) + np.zeros(1, np.int64) if name == "busy" else value * 2

    def messages_of_all_sizes(self) -> None:
        """All ranks to all ranks; those of one come in their order."""
        before = self.mailbox.traffic.nbytes
        for number in range(len(SIZES)):
            for peer in self.peers:
                self.mailbox.send(message(self.rank, peer, number), peer, DATA)
        self.record("traffic", self.mailbox.traffic.nbytes - before == sum(SIZES) * len(self.peers), "bytes differ")
        next_of = dict.fromkeys(self.peers, 0)
        for _ in range(len(SIZES) * len(self.peers)):
            arrived = self.received(ANY, DATA)
            expected = message(arrived.source, self.rank, next_of[arrived.source])
            next_of[arrived.source] += 1
            self.record(
                f"message of {expected.nbytes} bytes from {arrived.source}",
                arrived.value.dtype == expected.dtype and arrived.value.tobytes() == expected.tobytes(),
                f"{arrived.value.nbytes} bytes of {arrived.value.dtype}",
            )

    def tags_are_apart(self) -> None:
        """A receive takes its tag and its source only; a rank sends to itself."""
        for tag in (CALM, NEXT):
            for peer in range(self.world_size):
                self.mailbox.send(np.array([self.rank, tag]), peer, tag)
        for source in reversed(range(self.world_size)):
            found = [self.received(source, tag).value.tolist() for tag in (NEXT, CALM)]
            self.record(f"tags from {source}", found == [[source, NEXT], [source, CALM]], str(found))

    def large_ones_cross(self) -> None:
        """Ranks that send much to each other do not wait for each other's buffers."""
        value = np.full(LARGE, self.rank, np.uint8)
        for peer in self.peers:
            self.mailbox.send(value, peer, DATA)
        value[:] = 255
        for peer in self.peers:
            arrived = self.received(peer, DATA).value
            self.record(f"large from {peer}", bool((arrived == peer).all()), str(arrived[:3]))

    def puts_and_flags(self) -> None:
        """What was put is there when the flag after it is, in memory of the transport's and in other."""
        for region in ("x", "plain"):
            self.mailbox.put(np.array([3.5, self.rank]), self.right, region, 2)
            self.mailbox.flag(self.right, f"put {region}", 2)
            self.record(f"flag of {region}", self.mailbox.await_flag(f"put {region}", 2) == 2, "")
            own = (self.region if region == "x" else self.plain)[:4].tolist()
            self.record(f"put into {region}", own == [0, 0, 3.5, self.left], str(own))
            found = self.mailbox.get(self.right, region, 1, 3).tolist()
            self.record(f"get of {region}", found == [0, 3.5, self.rank], str(found))
        count = self.mailbox.get(self.right, "x", 0, -1).size
        self.record("get of all", count == REGION, str(count))
        go_through(barrier(self.rank, self.world_size), self.mailbox)
        self.region[:], self.plain[:] = 0, 0

    def gets_are_whole(self, end_of_puts: str = "no more puts") -> None:
        """Rank 0 puts as fast as it can into the region of rank 1, and all others get: the old array or the new one."""
        if self.rank == 0:
            end, number = time.monotonic() + TORN_S, 0.0
            while time.monotonic() < end:
                number += 1
                self.mailbox.put(np.full(REGION, number), 1, "x", 0)
            for peer in self.peers:
                self.mailbox.flag(peer, end_of_puts, 1)
            self.record("puts", number > 5, f"{number:.0f} puts")
            return
        seen, torn = set[float](), 0
        end = time.monotonic() + TORN_S
        while time.monotonic() < end:
            found = self.mailbox.get(1, "x", 0, -1)
            torn += found.min() != found.max()
            seen.add(float(found[0]))
        self.mailbox.await_flag(end_of_puts, 1)
        self.record("gets beside puts are whole", not torn, f"{torn} torn")
        self.record("gets see puts", len(seen) > 2, f"{len(seen)} different ones seen")

    def gets_in_pauses_are_whole(self) -> None:
        """Where each get asks the writers to pause."""
        one_sided_mailbox.TRIES, usual = 0, one_sided_mailbox.TRIES
        self.gets_are_whole("no more puts beside pauses")
        one_sided_mailbox.TRIES = usual

    def own_program_and_gets(self) -> None:
        """What a program changes between two effects is not seen half changed, where peers reach it by messages."""
        array = self.plain
        with beside(*[lambda: [self.mailbox.get(self.right, "plain", 0, -1) for _ in range(20)]]) as found:
            for number in range(200):
                with self.mailbox.guard:
                    for place in range(4):
                        array[place] = number
                time.sleep(0.001)
        torn = [each.tolist() for each in found[0] if each.min() != each.max()]
        self.record("gets beside the own program are whole", not torn, str(torn[:3]))

    def swaps_exclude(self) -> None:
        """A lock word that ranks take by compare-and-swap: the counter behind it loses nothing."""
        for _ in range(SWAPS):
            while self.mailbox.compare_and_swap(0, "lock", 0, self.rank + 1) != 0:
                time.sleep(0.0002)
            self.mailbox.put(self.mailbox.get(0, "counter", 0, 1) + 1, 0, "counter", 0)
            self.mailbox.flag(0, "lock", -self.rank - 1)
        self.mailbox.get(0, "counter", 0, 1)  # after this rank's last put, which messages of a barrier may overtake
        go_through(barrier(self.rank, self.world_size), self.mailbox)
        counted = int(self.mailbox.get(0, "counter", 0, 1)[0])
        self.record("swaps exclude", counted == SWAPS * self.world_size, f"{counted} of {SWAPS * self.world_size}")
        seen = 0
        for _ in range(COUNTS):  # as fast as it can
            while (found := self.mailbox.compare_and_swap(0, "count", seen, seen + 1)) != seen:
                seen = found
        go_through(barrier(self.rank, self.world_size), self.mailbox)
        wanted = COUNTS * self.world_size
        found = self.mailbox.compare_and_swap(0, "count", wanted, wanted)
        self.record("swaps count", found == wanted, f"{found} of {wanted}")
        old = self.mailbox.compare_and_swap(self.right, f"word of {self.rank}", 7, 8)
        self.record("a swap of another value changes nothing", old == 0, str(old))

    def receives_are_cancelled(self) -> None:
        """A cancelled receive takes nothing; one that has its message is not cancelled."""
        posted, late = Posted(), Posted()
        with beside(lambda: self.mailbox.receive(ANY, CANCELLED, posted)) as found:
            time.sleep(0.02)
            self.record("a receive is cancelled", self.mailbox.cancel(posted), "it says that it has a message")
        self.record("a cancelled receive has nothing", found[0] is None, str(found[0]))
        go_through(barrier(self.rank, self.world_size), self.mailbox)
        self.mailbox.send(np.array([self.rank]), self.right, CANCELLED)
        arrived = self.mailbox.receive(ANY, CANCELLED, late)
        self.record("the next receive has the message", arrived is not None and arrived.source == self.left, "")
        self.record("what has ended is not cancelled", not self.mailbox.cancel(late), "")

    def barriers_are_apart(self) -> None:
        """A posted receive from any rank takes no message of a barrier."""
        for _ in range(5):
            with beside(lambda: self.mailbox.receive(ANY, APART)) as found:
                go_through(barrier(self.rank, self.world_size), self.mailbox)
                self.mailbox.send(np.array([self.rank]), self.right, APART)
            self.record("barriers are apart", found[0].value.tolist() == [self.left], str(found[0]))
            go_through(barrier(self.rank, self.world_size), self.mailbox)

    def calls_of_who_is_busy(self) -> None:
        """Rank 0 sleeps, then computes in Python, then in NumPy: each is called meanwhile."""
        for number, way in enumerate((lambda: time.sleep(0.5), lambda: spin(0.5), lambda: multiply(0.5))):
            go_through(barrier(self.rank, self.world_size), self.mailbox)
            if self.rank == 0:
                self.busy = True
                for peer in self.peers:
                    self.mailbox.flag(peer, "busy", 1)
                way()
                self.busy = False
                continue
            self.mailbox.await_flag("busy", number + 1)
            busy = self.mailbox.call(np.zeros(0), 0, "busy").tolist()
            self.record(f"called while busy, way {number}", busy == [1], str(busy))

    def calls_of_who_has_ended(self) -> None:
        """Rank 0 has ended, and answers until all have."""
        if self.rank != 0:
            time.sleep(0.2)
            for count in (1, 100_000):
                answer = self.mailbox.call(np.ones(count), 0, "twice")
                self.record(f"called after its end, {count}", bool((answer == 2).all()) and answer.size == count, "")
        try:
            self.mailbox.close()
            error = ""
        except PeerLost as lost:
            error = str(lost)
        self.record("closes", not error, error)

    def received(self, source: int, tag: int) -> Message:
        arrived = self.mailbox.receive(source, tag)
        assert arrived is not None
        return arrived

    def record(self, name: str, passed: bool, detail: str) -> None:
        where = f"{self.context.case.transport}: {name}, {self.world_size} ranks, rank {self.rank}"
        self._keep(Checked(where, bool(passed), "" if passed else detail))


def spin(seconds: float) -> None:
    """Holds Python's lock as long as the interpreter lets it."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(1000))


def multiply(seconds: float) -> None:
    """NumPy's own loops, which let go of the lock."""
    value, end = np.ones((200, 200)), time.monotonic() + seconds
    while time.monotonic() < end:
        value = value @ np.eye(200)
