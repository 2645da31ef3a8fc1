"""Collective calls in the event engine, compiled: each rank goes through its rounds by itself, and enters the next when
what it sends and receives in this one is done."""

from __future__ import annotations

import numpy as np

from scaleproof.simulate.engine.event_queue import push
from scaleproof.simulate.engine.flow_network import NONE, start_flow
from scaleproof.simulate.engine.tables import State
from scaleproof.simulate.fair_rates import compiled

MESSAGE, ROUND = 2, 3
"""Kinds of events: a message has left; a rank's round of a call is over."""


@compiled
def flow(state: State, route: int, nbytes: float, highest: float, owner: int) -> None:
    """Starts a flow; `owner` is 2 * task, or 2 * message + 1."""
    first, last = state.routes.first[route], state.routes.first[route + 1]
    links, weights = state.routes.links[first:last], state.routes.weights[first:last]
    start_flow(state.network, state.queue, state.clock[0], nbytes, highest, links, weights, owner)


@compiled
def next_round(state: State, participant: int) -> bool:
    """Enters the next round of the call; False: there is none."""
    people, schedules = state.participants, state.schedules
    schedule = people.schedule[participant]
    if people.round[participant] == NONE:
        people.phase[participant], people.turn[participant] = schedules.phase[schedule], 0
    else:
        people.turn[participant] += 1
        if people.turn[participant] == schedules.times[people.phase[participant]]:
            people.phase[participant] += 1
            people.turn[participant] = 0
    people.round[participant] += 1
    if people.phase[participant] == schedules.phase[schedule + 1]:
        return False
    row = schedules.row[people.phase[participant]] + participant - people.first[participant]
    people.receiving[participant], people.sending[participant] = schedules.receives[row], 0
    for entry in range(schedules.sends[row], schedules.sends[row + 1]):
        _send(state, participant, entry)
    _take_early(state, participant)
    _end_round(state, participant)
    return True


@compiled
def _send(state: State, participant: int, entry: int) -> None:
    people, messages, schedules = state.participants, state.messages, state.schedules
    messages.height[0] -= 1
    message = messages.free[messages.height[0]]
    receiver = people.first[participant] + schedules.destination[entry]
    messages.receiver[message], messages.entry[message] = receiver, entry
    messages.round[message], messages.arrived[message] = people.round[participant], 0
    messages.sender[message] = NONE
    nbytes, buffer, stream = schedules.nbytes[entry], schedules.buffer[entry], schedules.stream[entry]
    queued = nbytes
    if stream != NONE:
        state.streams.nbytes[stream] += nbytes
        queued = state.streams.nbytes[stream]
    if queued > buffer:
        messages.sender[message] = participant
        people.sending[participant] += 1
    if nbytes > buffer and people.round[receiver] != people.round[participant]:
        _keep(state, message)
    else:
        push(state.queue, state.clock[0] + schedules.delay[entry], MESSAGE, message, 0)


@compiled
def enter_stream(state: State, message: int) -> None:
    """The message moves, or waits until those before it on its connection have arrived."""
    streams, messages = state.streams, state.messages
    stream = state.schedules.stream[messages.entry[message]]
    if stream == NONE or streams.moving[stream] == NONE:
        _move_message(state, message)
        return
    _append(messages.behind, streams.head, streams.tail, stream, message)


@compiled
def _move_message(state: State, message: int) -> None:
    entry, schedules = state.messages.entry[message], state.schedules
    if schedules.stream[entry] != NONE:
        state.streams.moving[schedules.stream[entry]] = message
    flow(state, schedules.route[entry], schedules.nbytes[entry], schedules.highest[entry], 2 * message + 1)


@compiled
def next_in_stream(state: State, message: int) -> None:
    """The message has arrived: the one behind it moves."""
    streams, entry = state.streams, state.messages.entry[message]
    stream = state.schedules.stream[entry]
    if stream == NONE:
        return
    streams.nbytes[stream] -= state.schedules.nbytes[entry]
    following = streams.head[stream]
    streams.moving[stream] = NONE
    if following != NONE:
        streams.head[stream] = state.messages.behind[following]
        _move_message(state, following)


@compiled
def _keep(state: State, message: int) -> None:
    """The message waits until its receiver is in its round."""
    people, messages = state.participants, state.messages
    _append(messages.behind, people.early, people.latest, messages.receiver[message], message)


@compiled
def _append(behind: np.ndarray, first: np.ndarray, last: np.ndarray, number: int, message: int) -> None:
    """Puts the message at the end of a list: that of this number, which goes from `first` to `last` by `behind`."""
    behind[message] = NONE
    if first[number] == NONE:
        first[number] = message
    else:
        behind[last[number]] = message
    last[number] = message


@compiled
def _take_early(state: State, participant: int) -> None:
    """Messages of the round that was just entered: those that have arrived are received, others leave now."""
    people, messages = state.participants, state.messages
    before, message = NONE, people.early[participant]
    while message != NONE:
        behind = messages.behind[message]
        if messages.round[message] != people.round[participant]:
            before = message
        else:
            if before == NONE:
                people.early[participant] = behind
            else:
                messages.behind[before] = behind
            if behind == NONE:
                people.latest[participant] = before
            if messages.arrived[message]:
                people.receiving[participant] -= 1
                _drop(state, message)
            else:
                delay = state.schedules.delay[messages.entry[message]]
                push(state.queue, state.clock[0] + delay, MESSAGE, message, 0)
        message = behind


@compiled
def arrive(state: State, message: int) -> None:
    """The message is received, or waits until its receiver is in its round."""
    people, messages = state.participants, state.messages
    sender, receiver = messages.sender[message], messages.receiver[message]
    if people.round[receiver] != messages.round[message]:
        messages.arrived[message] = 1
        _keep(state, message)
    else:
        people.receiving[receiver] -= 1
        _drop(state, message)
        _end_round(state, receiver)
    if sender != NONE:
        people.sending[sender] -= 1
        _end_round(state, sender)


@compiled
def _drop(state: State, message: int) -> None:
    messages = state.messages
    messages.free[messages.height[0]] = message
    messages.height[0] += 1


@compiled
def _end_round(state: State, participant: int) -> None:
    """The round ends after the rank's work, once nothing of it is outstanding."""
    people, schedules = state.participants, state.schedules
    if people.receiving[participant] or people.sending[participant]:
        return
    row = schedules.row[people.phase[participant]] + participant - people.first[participant]
    push(state.queue, state.clock[0] + schedules.work[row], ROUND, participant, 0)
