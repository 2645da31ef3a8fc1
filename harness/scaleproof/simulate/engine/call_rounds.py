"""Collective calls in the event engine, compiled: each rank goes through its rounds by itself, and enters the next when
what it sends and receives in this one is done."""

from __future__ import annotations

from scaleproof.simulate.engine.event_queue import ROUND, push
from scaleproof.simulate.engine.flow_network import NONE
from scaleproof.simulate.engine.messages import append, drop, launch, new_message, queued_bytes, unlink
from scaleproof.simulate.engine.tables import ARRIVED, OF_CALL, State
from scaleproof.simulate.fair_rates import compiled


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
    nbytes, buffer, stream = schedules.nbytes[entry], schedules.buffer[entry], schedules.stream[entry]
    message = new_message(
        messages, OF_CALL, schedules.route[entry], nbytes, schedules.highest[entry], schedules.delay[entry], stream
    )
    receiver = people.first[participant] + schedules.destination[entry]
    messages.receiver[message], messages.mark[message] = receiver, people.round[participant]
    if queued_bytes(state.streams, stream, nbytes) > buffer:
        messages.sender[message] = participant
        people.sending[participant] += 1
    if nbytes > buffer and people.round[receiver] != people.round[participant]:
        _keep(state, message)
    else:
        launch(state, message)


@compiled
def _keep(state: State, message: int) -> None:
    """The message waits until its receiver is in its round."""
    people, messages = state.participants, state.messages
    append(messages.behind, people.early, people.latest, messages.receiver[message], message)


@compiled
def _take_early(state: State, participant: int) -> None:
    """Messages of the round that was just entered: those that have arrived are received, others leave now."""
    people, messages = state.participants, state.messages
    before, message = NONE, people.early[participant]
    while message != NONE:
        behind = messages.behind[message]
        if messages.mark[message] != people.round[participant]:
            before = message
        else:
            unlink(messages.behind, people.early, people.latest, participant, before, message)
            if messages.state[message] == ARRIVED:
                people.receiving[participant] -= 1
                drop(messages, message)
            else:
                launch(state, message)
        message = behind


@compiled
def arrive(state: State, message: int) -> None:
    """The message is received, or waits until its receiver is in its round."""
    people, messages = state.participants, state.messages
    sender, receiver = messages.sender[message], messages.receiver[message]
    if people.round[receiver] != messages.mark[message]:
        messages.state[message] = ARRIVED
        _keep(state, message)
    else:
        people.receiving[receiver] -= 1
        drop(messages, message)
        _end_round(state, receiver)
    if sender != NONE:
        people.sending[sender] -= 1
        _end_round(state, sender)


@compiled
def _end_round(state: State, participant: int) -> None:
    """The round ends after the rank's work, once nothing of it is outstanding."""
    people, schedules = state.participants, state.schedules
    if people.receiving[participant] or people.sending[participant]:
        return
    row = schedules.row[people.phase[participant]] + participant - people.first[participant]
    push(state.queue, state.clock[0] + schedules.work[row], ROUND, participant, 0)
