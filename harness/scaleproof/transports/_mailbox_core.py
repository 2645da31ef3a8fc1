"""What all mailboxes share: messages that have arrived, regions and flags, answers, and who has ended. How frames move
is the part of each mailbox."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from scaleproof.core.transport_errors import PeerLost, TransportError
from scaleproof.transports._mailbox_frames import ANSWER, CALL, END, FLAG, GET, LAST, MESSAGE, PUT, SWAP, Frame
from scaleproof.transports.contract import Capabilities, Traffic
from scaleproof.transports.mailbox import ANY, Arrivals, Lost, Message, Posted, Regions, Serve

if TYPE_CHECKING:
    from scaleproof.core.context import RankContext

Result = TypeVar("Result")
EMPTY = np.empty(0, np.uint8)
SILENT_S = 0.001
"""How long a thread waits before it reports on the board that it waits."""


class MailboxCore(ABC):
    """See transports/mailbox.py."""

    capabilities: Capabilities

    def __init__(self, context: RankContext) -> None:
        self.rank, self.world_size, self.traffic = context.rank, context.world_size, Traffic()
        self.guard, self.computing = threading.Lock(), False
        self._post, self._rendezvous = context.post, context.rendezvous
        self._peers = [peer for peer in range(context.world_size) if peer != context.rank]
        self._changed = threading.Condition()
        self._messages, self._regions = Arrivals(), Regions(context.rank, {})
        self._serve: Serve
        self._answers: dict[int, np.ndarray] = {}
        self._calls = 0
        self._ended: set[int] = set()
        """Peers whose programs have ended. They still answer calls."""
        self._left: set[int] = set()
        """Peers that send nothing any more."""
        self._error: TransportError | None = None
        self.mortal: frozenset[int] = frozenset()
        self.returning: frozenset[int] = frozenset()
        self.lost: frozenset[int] = frozenset()
        self._losses: Counter[int] = Counter()
        """How often each peer was lost: what waits for an answer of one that was lost meanwhile has none."""

    @abstractmethod
    def _push(self, peer: int, frame: Frame) -> None:
        """Sends a frame to a peer; returns when its array may be changed again. Raises PeerLost."""

    @abstractmethod
    def _ask(self, peer: int, number: int, answer: Callable[[], np.ndarray]) -> None:
        """Answers a peer, now or in the order of its questions, and never waits for the peer."""

    @abstractmethod
    def _start(self) -> None:
        """Begins to take what arrives."""

    def memory(self, nbytes: int) -> np.ndarray:
        """See Mailbox.memory."""
        return np.zeros(nbytes, np.uint8)

    def open(self, serve: Serve, regions: Mapping[str, np.ndarray]) -> None:
        """See Mailbox.open."""
        self._serve, self._regions = serve, Regions(self.rank, regions)
        self._start()

    def send(self, value: np.ndarray, peer: int, tag: int) -> None:
        """See Mailbox.send."""
        if peer == self.rank:
            self._arrive(Message(peer, tag, value.copy()))
        else:
            self._push(peer, Frame(MESSAGE, value, tag=tag))

    def receive(self, source: int, tag: int, posted: Posted | None = None) -> Message | None:
        """See Mailbox.receive."""
        return self._unless(posted, lambda: self._taken(source, tag), source, f"a message with tag {tag}")

    def call(self, value: np.ndarray, peer: int, name: str) -> np.ndarray:
        """See Mailbox.call."""
        if peer == self.rank:
            return self._served(peer, name, value.copy())
        return self._answer_of(peer, CALL, value, name)

    def put(self, value: np.ndarray, peer: int, region: str, start: int) -> None:
        """See Mailbox.put."""
        if peer == self.rank:
            self._write(peer, region, start, value)
        else:
            self._push(peer, Frame(PUT, value, tag=start, name=region))

    def get(self, peer: int, region: str, start: int, count: int) -> np.ndarray:
        """See Mailbox.get."""
        if peer == self.rank:
            return self._read(peer, region, start, count)
        return self._answer_of(peer, GET, np.array([count]), region, start)

    def flag(self, peer: int, name: str, add: int) -> None:
        """See Mailbox.flag."""
        if peer == self.rank:
            self._add(name, add)
        else:
            self._push(peer, Frame(FLAG, EMPTY, tag=add, name=name))

    def compare_and_swap(self, peer: int, name: str, expected: int, new: int) -> int:
        """See Mailbox.compare_and_swap."""
        if peer == self.rank:
            return int(self._swap(name, expected, new)[0])
        return int(self._answer_of(peer, SWAP, np.array([expected, new]), name)[0])

    def await_flag(self, name: str, least: int, posted: Posted | None = None) -> int | None:
        """See Mailbox.await_flag."""
        return self._unless(posted, lambda: self._reached(name, least), ANY, f"flag {name!r} of {least}")

    def cancel(self, posted: Posted) -> bool:
        """See Mailbox.cancel."""
        with self._changed:
            posted.cancelled = not posted.ended
            self._changed.notify_all()
        return posted.cancelled

    def _taken(self, source: int, tag: int) -> Message | None:
        if isinstance(taken := self._messages.take(source, tag), Lost):
            raise taken.error()
        return taken

    def _reached(self, name: str, least: int) -> int | None:
        value = self._flag(name)
        return value if value >= least else None

    def _flag(self, name: str) -> int:
        """The value of a flag of this rank."""
        return self._regions.flags.get(name, 0)

    def _end(self) -> None:
        """Tells all peers that the program has ended, and waits until theirs have."""
        self._push_to_all(Frame(END, EMPTY))
        self._until_all(self._ended)

    def _push_to_all(self, frame: Frame) -> None:
        """To all peers but those that are lost."""
        for peer in self._peers:
            try:
                self._push(peer, frame)
            except PeerLost:
                if peer not in self.mortal:
                    raise

    def _until_all(self, reached: set[int]) -> None:
        """Waits until each peer is there, or is lost."""
        for peer in self._peers:
            self._until(lambda peer=peer: peer in reached | self.lost or None, peer)  # type: ignore[misc]

    def _answer_of(self, peer: int, kind: int, value: np.ndarray, name: str, tag: int = 0) -> np.ndarray:
        with self._changed:
            number, losses = self._calls, self._losses[peer]
            self._calls += 1
        self._push(peer, Frame(kind, value, tag, name, number))
        return self._until(lambda: self._answer(number, peer, losses), peer)

    def _answer(self, number: int, peer: int, losses: int) -> np.ndarray | None:
        answer = self._answers.pop(number, None)
        if answer is None and self._losses[peer] > losses:
            raise Lost(peer).error()
        return answer

    def _deliver(self, peer: int, frame: Frame) -> None:
        """A frame has arrived. Called in their order. Raises TransportError where it makes no sense."""
        kind, number, name, value = frame.kind, frame.number, frame.name, frame.value
        if kind == CALL:
            self._ask(peer, number, partial(self._served, peer, name, value))
        elif kind == GET:
            self._ask(peer, number, partial(self._read, peer, name, frame.tag, int(value[0])))
        elif kind == SWAP:
            self._ask(peer, number, partial(self._swap, name, int(value[0]), int(value[1])))
        elif kind == PUT:
            self._write(peer, name, frame.tag, value)
        elif kind == FLAG:
            self._add(name, frame.tag)
        elif kind == MESSAGE:
            self._arrive(Message(peer, frame.tag, value))
        elif kind in (ANSWER, END, LAST):
            with self._changed:
                if kind == ANSWER:
                    self._answers[number] = value
                else:
                    (self._ended if kind == END else self._left).add(peer)
                self._changed.notify_all()
        else:
            raise TransportError(f"rank {peer} sent a frame of unknown kind {kind}")

    def _served(self, peer: int, name: str, value: np.ndarray) -> np.ndarray:
        with self.guard:
            return self._serve(peer, name, value).copy()

    def _write(self, peer: int, region: str, start: int, value: np.ndarray) -> None:
        with self.guard:
            self._regions.put(peer, region, start, value)

    def _read(self, peer: int, region: str, start: int, count: int) -> np.ndarray:
        with self.guard:
            return self._regions.get(peer, region, start, count)

    def _swap(self, name: str, expected: int, new: int) -> np.ndarray:
        with self._changed:
            if (old := self._flag(name)) == expected:
                self._regions.flag(name, new - old)
                self._changed.notify_all()
        return np.array([old])

    def _arrive(self, message: Message) -> None:
        with self._changed:
            self._messages.add(message)
            self._changed.notify_all()

    def _add(self, flag: str, add: int) -> None:
        with self._changed:
            self._regions.flag(flag, add)
            self._changed.notify_all()

    def _fail(self, error: Exception) -> None:
        """Whoever waits here, now or later, gets the error: else it would wait for ever."""
        with self._changed:
            self._error = self._error or (error if isinstance(error, TransportError) else TransportError(str(error)))
            self._changed.notify_all()

    def _lose(self, peer: int) -> None:
        """A mortal rank is gone: what waits for it alone has an error."""
        with self._changed:
            if peer not in self.lost:
                self.lost |= {peer}
                self._losses[peer] += 1
                self._messages.lose(peer)
                self._changed.notify_all()

    def _regain(self, peer: int) -> None:
        """A lost rank has a successor."""
        with self._changed:
            self.lost -= {peer}
            self._messages.regain(peer)
            self._changed.notify_all()

    def _raise_if_lost(self, peer: int) -> None:
        if peer in self.lost:
            raise Lost(peer).error()

    def _unless(
        self, posted: Posted | None, ready: Callable[[], Result | None], peer: int, expected: str
    ) -> Result | None:
        """Waits until there is a result or the wait is cancelled: then it takes nothing."""

        def ended() -> tuple[Result | None] | None:
            if posted is not None and posted.cancelled:
                return (None,)
            result = ready()
            if result is not None and posted is not None:
                posted.ended = True
            return None if result is None else (result,)

        return self._until(ended, peer, expected)[0]

    def _until(self, ready: Callable[[], Result | None], peer: int, expected: str = "") -> Result:
        """Waits until there is a result. `expected`: of a peer, or of ANY, that has not ended."""
        silent = False
        try:
            with self._changed:
                while (result := ready()) is None:
                    self._raise_if_failed()
                    if expected:
                        self._raise_if_gone(peer, expected)
                    if not self._changed.wait(None if silent else SILENT_S):
                        silent = True  # and looks again: it may have come between the wait and the lock
                        self._post.wait(peer)
        except PeerLost as error:
            if silent and error.peer in self.mortal:  # the rank goes on
                self._post.stop_waiting()
            raise
        if silent:
            self._post.stop_waiting()
        return result

    def _raise_if_failed(self) -> None:
        if self._error is not None:
            raise self._error

    def _raise_if_gone(self, source: int, what: str) -> None:
        """Raises where no rank is left that could send."""
        peers = set(self._peers) if source == ANY else {source} & set(self._peers)
        if peers and peers <= self._ended | (self.lost - self.returning):
            who = "all other ranks have" if source == ANY else f"rank {source} has"
            raise PeerLost(source, f"{who} ended, and {what} was expected")
