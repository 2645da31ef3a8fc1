"""What drivers record of the effects of a rank program, and say of them to the user."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from scaleproof.core.transport_errors import TransportError
from scaleproof.rank_programs.effects import (
    ANY,
    Await,
    AwaitAll,
    AwaitFlag,
    Call,
    Collective,
    CompareAndSwap,
    Compute,
    Effect,
    Flag,
    Get,
    Poll,
    Put,
    Receive,
    Send,
)
from scaleproof.rank_programs.rank_program import FINISHED_NBYTES
from scaleproof.transports.mailbox import Lost

_EVENTS: dict[type, Callable[[Any], str]] = {
    Send: lambda send: "" if send.tag < 0 else "control" if send.control else "send",
    Receive: lambda wait: "" if wait.tag < 0 else "wait" if wait.within is None else "delay",
    Call: lambda call: "control" if call.control else "call",
    Poll: lambda _: "control",
    Put: lambda _: "put",
    Get: lambda _: "get",
    CompareAndSwap: lambda _: "swap",
    AwaitFlag: lambda _: "wait",
    AwaitAll: lambda _: "wait",
    Collective: lambda collective: collective.operation,
    Compute: lambda compute: compute.event,
    Await: lambda waited: waited.event,
}
_MOVED: dict[type, Callable[[Any, Any], int]] = {
    Send: lambda send, _: send.value.nbytes,
    Receive: lambda _, message: 0 if message is None else message.value.nbytes,
    Call: lambda call, reply: int(call.value.nbytes + reply.nbytes),
    Poll: lambda _, questions: int(questions) * FINISHED_NBYTES,
    Put: lambda put, _: put.value.nbytes,
    Get: lambda _, value: int(value.nbytes),
    Collective: lambda collective, _: collective.value.nbytes,
    Await: lambda waited, _: waited.nbytes,
}
_VALUES: dict[type, Callable[[Any, Any], float]] = {
    Receive: lambda _, message: math.nan if message is None else float(message.source),
    Call: lambda call, _: math.nan if call.control else float(call.peer),
    Poll: lambda _, questions: float(questions),
    Get: lambda get, _: float(get.peer),
    CompareAndSwap: lambda swap, _: float(swap.peer),
    Compute: lambda compute, _: compute.value,
}


class Recorded(NamedTuple):
    """What every driver records of an effect that has ended.

    `nbytes`: that it moved. `value`: the rank whose message a receive took, that a call, a get or a swap asked, or that
    is lost; of a poll the number of its questions; what a Compute says; NaN: another effect, or control."""

    event: str
    nbytes: int
    value: float


def event_of(effect: Effect) -> str:
    """The event that every driver records of an effect; empty: none, as for messages of a barrier."""
    event = _EVENTS.get(type(effect))
    return event(effect) if event else ""


def recorded(event: str, effect: Effect, result: Any) -> Recorded:
    """Of an effect with this event that has this result."""
    kind = type(effect)
    if type(result) is Lost:
        return Recorded("lost", 0, float(result.source))
    moved, value = _MOVED.get(kind), _VALUES.get(kind)
    return Recorded(event, moved(effect, result) if moved else 0, value(effect, result) if value else math.nan)


def described(effect: Effect) -> str:
    """What a rank does, in a message to the user."""
    if isinstance(effect, Receive):
        source = "any rank" if effect.source == ANY else f"rank {effect.source}"
        return f"is {effect.part_of} with {source}" if effect.part_of else f"receives from {source}, tag {effect.tag}"
    if isinstance(effect, AwaitFlag):
        return f"waits for flag {effect.name!r} of {effect.least}"
    if isinstance(effect, Send):
        return f"sends {effect.value.nbytes} B to rank {effect.peer}, tag {effect.tag}"
    if isinstance(effect, Compute):
        return effect.event
    if isinstance(effect, Collective):
        return f"{effect.operation} of {effect.nbytes} B with {effect.group}, tag {effect.tag}"
    name = type(effect).__name__.lower()
    return f"{name} at rank {effect.peer}" if isinstance(effect, Call | Put | Get | Flag | CompareAndSwap) else name


def check_cancellable(effect: Effect) -> None:
    """Raises TransportError for an effect that takes more than what it waits for."""
    if not isinstance(effect, Receive | AwaitFlag):
        raise TransportError(f"only a Receive or an AwaitFlag can be cancelled, not a {type(effect).__name__}")
