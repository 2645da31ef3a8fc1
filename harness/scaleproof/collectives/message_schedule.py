"""A collective as a generator of messages: written once per algorithm, executed over a transport by an engine, and
simulated in simulate/."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from scaleproof.spec import registry
from scaleproof.spec.case import Operation


class Action(Enum):
    """Whether the destination copies a message's elements over its own, or reduces them into its own."""

    COPY = "copy"
    REDUCE = "reduce"


class Message(NamedTuple):
    """In `round`, elements [start, stop) of the work buffer go from `source` to the same elements at `destination`.

    Messages of one round are independent: no rank receives an element twice, and none sends elements that it receives
    in that round, unless the collective's trait `exchanges` says so. It sends those that it had before the round.
    """

    round: int
    source: int
    destination: int
    start: int
    stop: int
    action: Action


def messages(
    algorithm: str, operation: Operation, world_size: int, count: int, *, root: int = 0, rank: int | None = None
) -> Iterator[Message]:
    """All messages of one collective in order of rounds, or only those that `rank` sends or receives; empty ones are
    left out.

    `algorithm`: a registered name, or the result of `schedule_of`. `count`: elements of the work buffer. For all_reduce
    and broadcast the work buffer is the array. For reduce_scatter and all_gather it has world_size * n elements, and
    rank r's block is [r*n, (r+1)*n); only that block is defined after a reduce_scatter and before an all_gather.
    """
    name, _, nodes = algorithm.partition("/")
    options: dict[str, int | None] = {"rank": rank}
    if operation == "broadcast":
        options["root"] = root
    if nodes:
        options["nodes"] = int(nodes)
    generator = getattr(registry.load("collective", name), operation)
    generated: Iterator[Message] = generator(world_size, count, **options)
    return (message for message in generated if message.stop > message.start)


def schedule_of(collective: str, nodes: int) -> str:
    """A collective's name, followed by a slash and the number of nodes if its schedule depends on them."""
    return f"{collective}/{nodes}" if registry.get("collective", collective).knows_nodes else collective


def bound(index: int, parts: int, count: int) -> int:
    """Start of part `index` when `count` elements are split into `parts` nearly equal ones."""
    return index * count // parts


def involved(rank: int | None, source: int, destination: int) -> bool:
    """Whether a message concerns `rank` (None: every message does)."""
    return rank is None or rank in (source, destination)
