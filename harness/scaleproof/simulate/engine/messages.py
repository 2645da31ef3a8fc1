"""Messages in the event engine, compiled: what those of calls and those between tasks have in common. A list goes from
its first row to its last by a column that names the next."""

from __future__ import annotations

import numpy as np

from scaleproof.simulate.compiled import compiled, inlined
from scaleproof.simulate.engine.event_queue import MESSAGE, push
from scaleproof.simulate.engine.flow_network import NONE, start_flow
from scaleproof.simulate.engine.tables import FREE_MESSAGES, HELD, MOVING, State


@inlined
def flow(state: State, route: int, nbytes: float, highest: float, owner: int) -> None:
    """Starts a flow; `owner` is 2 * task, or 2 * message + 1, or -1 - participant for the work of its round."""
    first, last = state.routes.first[route], state.routes.first[route + 1]
    links, weights = state.routes.links[first:last], state.routes.weights[first:last]
    start_flow(state.network, state.clock[0], nbytes, highest, links, weights, owner)


@inlined
def new_message(messages: np.recarray, counts: np.ndarray, kind: int, content: np.record) -> int:
    """The number of a message that waits for its receiver; `content`: a task, or a message of a round, which says what
    it is. The caller has made sure that there is room."""
    counts[FREE_MESSAGES] -= 1
    number = messages[counts[FREE_MESSAGES]].free
    message = messages[number]
    message.kind, message.state, message.sender, message.receiver = kind, HELD, NONE, NONE
    message.route, message.stream = content.route, content.stream
    message.highest, message.delay = content.highest, content.delay
    return int(number)


@inlined
def drop(messages: np.recarray, counts: np.ndarray, message: int) -> None:
    """The message is received; its row is free."""
    messages[counts[FREE_MESSAGES]].free = message
    counts[FREE_MESSAGES] += 1


@inlined
def queued_bytes(streams: np.recarray, stream: int, nbytes: float) -> float:
    """Bytes that the sender has in its buffer for this connection, with those of a new message."""
    if stream == NONE:
        return nbytes
    streams[stream].nbytes += nbytes
    return float(streams[stream].nbytes)


@inlined
def launch(state: State, message: int) -> None:
    """The message leaves after its delay."""
    state.messages[message].state = MOVING
    push(state.queue, state.clock[0] + state.messages[message].delay, MESSAGE, message)


@compiled
def enter_stream(state: State, number: int) -> None:
    """The message moves, or waits until those before it on its connection have arrived."""
    message = state.messages[number]
    if message.stream != NONE:
        stream = state.streams[message.stream]
        if stream.moving != NONE:
            append(state.messages.behind, state.streams.head, state.streams.tail, message.stream, number)
            return
        stream.moving = number
    flow(state, message.route, message.nbytes, message.highest, 2 * number + 1)


@compiled
def next_in_stream(state: State, number: int) -> None:
    """The message has arrived: the one behind it moves."""
    message = state.messages[number]
    if message.stream == NONE:
        return
    stream = state.streams[message.stream]
    stream.nbytes -= message.nbytes
    stream.moving = stream.head
    if stream.head != NONE:
        following = state.messages[stream.head]
        stream.head = following.behind
        flow(state, following.route, following.nbytes, following.highest, 2 * stream.moving + 1)


@inlined
def append(behind: np.ndarray, first: np.ndarray, last: np.ndarray, number: int, item: int) -> None:
    """Puts an item at the end of list `number`, which goes from `first` to `last` by `behind`."""
    behind[item] = NONE
    if first[number] == NONE:
        first[number] = item
    else:
        behind[last[number]] = item
    last[number] = item


@inlined
def unlink(behind: np.ndarray, first: np.ndarray, last: np.ndarray, number: int, before: int, item: int) -> None:
    """Takes an item out of list `number`; `before`: the item before it (NONE: it is the first)."""
    following = behind[item]
    if before == NONE:
        first[number] = following
    else:
        behind[before] = following
    if following == NONE:
        last[number] = before
