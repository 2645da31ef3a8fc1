"""The context of a rank: its case, its number in the launch, and its recorder, board and rendezvous."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from scaleproof.core.board import Board, Post
from scaleproof.core.counters import Counters
from scaleproof.core.killed_rank import KilledRank
from scaleproof.core.recorder import Recorder
from scaleproof.core.rendezvous import Rendezvous
from scaleproof.spec.case import AnyCase


@dataclass(slots=True)
class RankContext:
    """The argument of programs, transports and strategies. `checks`: results of correctness checks; `facts`: further
    entries of the rank's record."""

    case: AnyCase
    rank: int
    world_size: int
    launch_id: str
    token: str
    seed: int
    folder: Path
    """Scratch of this launch, shared by its ranks, removed afterwards."""
    address: str
    """IP address of the fabric's interface that this rank binds and sends on."""
    rendezvous: Rendezvous
    recorder: Recorder
    board: Board
    checks: list[dict[str, Any]] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    artifacts: dict[str, Path] = field(default_factory=dict)
    """Files to keep in the record beside the samples, by name."""
    programs: str = ""
    """Folder of the suite's own programs."""
    jitter: str = ""
    """The law of the factors on replayed compute, with its numbers (spec/straggler_law.py); empty: none."""
    byte_s: float = 0.0
    """What a byte of own arithmetic takes beside replayed compute, s of true time."""
    inputs: list[dict[str, Any]] = field(default_factory=list)
    """Checks of the data before timing, each as core/record_schema.py's InputCheck."""
    counters: dict[str, Counters] = field(default_factory=dict)
    """Interface counters of this rank's namespace at the `start` and the `end` of the timed region."""
    trace: list[tuple[str, int, int, int, int]] = field(default_factory=list)
    """In a traced case, messages of the engine that are not recorded yet: event, start and end in ns, bytes, peer."""
    held_sockets: frozenset[str] = frozenset()
    """Inodes of sockets that this rank had before its program; all other sockets belong to the transport."""
    predecessor: KilledRank | None = None
    """Of a rank that takes the place of one that a fault of the case has killed."""
    post: Post = field(init=False)
    """For collectives and transports to report their call and round, and the rank that they wait for."""

    def __post_init__(self) -> None:
        self.post = self.rendezvous.post = self.board.post(self.rank)

    def of_channel(self, number: int) -> RankContext:
        """For a further channel (from 1 on): a transport that is connected with it finds the peers' transports of the
        same channel. Its facts are apart."""
        post, channel = self.post, replace(self, rendezvous=self.rendezvous.within(f"channel-{number}"), facts={})
        channel.post = channel.rendezvous.post = post.of_channel(number)
        return channel

    def at(self, step: int, operation: str, peer: int = -1) -> None:
        """Report the next step and operation of this rank, and its peer; waiting is reported by `post`."""
        self.board.write(self.rank, step=step, operation=operation, peer=peer)

    def check(self, name: str, passed: bool, detail: str = "") -> None:
        """Record the result of a correctness check (outside the timed region); a failed one fails the launch with
        `check_failed`."""
        self.checks.append({"name": name, "passed": bool(passed), "detail": detail})
