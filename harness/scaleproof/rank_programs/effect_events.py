"""What drivers record of the effects of a rank program, and say of them to the user."""

from __future__ import annotations

import math
from typing import Any

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
from scaleproof.transports.mailbox import Lost

_EVENTS: dict[type, str] = {
    Send: "send",
    Receive: "wait",
    Call: "call",
    Poll: "control",
    Put: "put",
    Get: "get",
    CompareAndSwap: "swap",
    AwaitFlag: "wait",
    AwaitAll: "wait",
}
_TAGGED, _CONTROLLED, _NAMED, _SENT = (Send, Receive), (Send, Call), (Compute, Await), (Send, Put, Collective)


def event_of(effect: Effect, result: Any = None) -> str:
    """The event that every driver records of an effect; empty: none, as for messages of a barrier."""
    if isinstance(result, Lost):
        return "lost"
    if isinstance(effect, _TAGGED) and effect.tag < 0:
        return ""
    if isinstance(effect, Receive) and effect.within is not None:
        return "delay"
    if isinstance(effect, _CONTROLLED) and effect.control:
        return "control"
    if isinstance(effect, Collective):
        return effect.operation
    return effect.event if isinstance(effect, _NAMED) else _EVENTS.get(type(effect), "")


def moved_nbytes(effect: Effect, result: Any) -> int:
    """Bytes that an effect moved."""
    if isinstance(result, Lost):
        return 0
    if isinstance(effect, Call):
        return int(effect.value.nbytes + result.nbytes)
    if isinstance(effect, _SENT):
        return effect.value.nbytes
    if isinstance(effect, Await):
        return effect.nbytes
    if isinstance(effect, Get):
        return int(result.nbytes)
    return result.value.nbytes if isinstance(effect, Receive) and result is not None else 0


def source_of(effect: Effect, result: Any) -> float:
    """The rank whose message a receive took, that a call, a get or a swap asked, or that is lost; of a poll the number
    of its questions; what a Compute says; NaN: another effect, or control."""
    if isinstance(result, Lost):
        return float(result.source)
    if isinstance(effect, Poll):
        return float(result)
    if isinstance(effect, Compute):
        return effect.value
    if isinstance(effect, Call | Get | CompareAndSwap):
        return math.nan if isinstance(effect, Call) and effect.control else float(effect.peer)
    return float(result.source) if isinstance(effect, Receive) and result is not None else math.nan


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
