"""Messages in the event engine, compiled: what those of calls and those between tasks have in common."""

from __future__ import annotations

import numpy as np

from scaleproof.simulate.engine.event_queue import MESSAGE, push
from scaleproof.simulate.engine.flow_network import NONE, start_flow
from scaleproof.simulate.engine.tables import HELD, MOVING, Messages, State, Streams
from scaleproof.simulate.fair_rates import compiled


@compiled
def flow(state: State, route: int, nbytes: float, highest: float, owner: int) -> None:
    """Starts a flow; `owner` is 2 * task, or 2 * message + 1."""
    first, last = state.routes.first[route], state.routes.first[route + 1]
    links, weights = state.routes.links[first:last], state.routes.weights[first:last]
    start_flow(state.network, state.queue, state.clock[0], nbytes, highest, links, weights, owner)


@compiled
def new_message(
    messages: Messages, kind: int, route: int, nbytes: float, highest: float, delay: float, stream: int
) -> int:
    """The number of a message that waits for its receiver. The caller has made sure that there is room."""
    messages.height[0] -= 1
    message: int = messages.free[messages.height[0]]
    messages.kind[message], messages.state[message] = kind, HELD
    messages.route[message], messages.nbytes[message] = route, nbytes
    messages.highest[message], messages.delay[message] = highest, delay
    messages.stream[message] = stream
    messages.sender[message] = messages.receiver[message] = NONE
    return message


@compiled
def drop(messages: Messages, message: int) -> None:
    """The message is received; its place is free."""
    messages.free[messages.height[0]] = message
    messages.height[0] += 1


@compiled
def queued_bytes(streams: Streams, stream: int, nbytes: float) -> float:
    """Bytes that the sender has in its buffer for this connection, with those of a new message."""
    if stream == NONE:
        return nbytes
    streams.nbytes[stream] += nbytes
    queued: float = streams.nbytes[stream]
    return queued


@compiled
def launch(state: State, message: int) -> None:
    """The message leaves after its delay."""
    state.messages.state[message] = MOVING
    push(state.queue, state.clock[0] + state.messages.delay[message], MESSAGE, message, 0)


@compiled
def enter_stream(state: State, message: int) -> None:
    """The message moves, or waits until those before it on its connection have arrived."""
    streams, messages = state.streams, state.messages
    stream = messages.stream[message]
    if stream == NONE or streams.moving[stream] == NONE:
        _move(state, message)
        return
    append(messages.behind, streams.head, streams.tail, stream, message)


@compiled
def _move(state: State, message: int) -> None:
    messages = state.messages
    if messages.stream[message] != NONE:
        state.streams.moving[messages.stream[message]] = message
    flow(state, messages.route[message], messages.nbytes[message], messages.highest[message], 2 * message + 1)


@compiled
def next_in_stream(state: State, message: int) -> None:
    """The message has arrived: the one behind it moves."""
    streams, messages = state.streams, state.messages
    stream = messages.stream[message]
    if stream == NONE:
        return
    streams.nbytes[stream] -= messages.nbytes[message]
    following = streams.head[stream]
    streams.moving[stream] = NONE
    if following != NONE:
        streams.head[stream] = messages.behind[following]
        _move(state, following)


@compiled
def append(behind: np.ndarray, first: np.ndarray, last: np.ndarray, number: int, item: int) -> None:
    """Puts an item at the end of list `number`, which goes from `first` to `last` by `behind`."""
    behind[item] = NONE
    if first[number] == NONE:
        first[number] = item
    else:
        behind[last[number]] = item
    last[number] = item


@compiled
def unlink(behind: np.ndarray, first: np.ndarray, last: np.ndarray, number: int, before: int, item: int) -> None:
    """Takes an item out of list `number`; `before`: the item before it (NONE: it is the first)."""
    following = behind[item]
    if before == NONE:
        first[number] = following
    else:
        behind[before] = following
    if following == NONE:
        last[number] = before
