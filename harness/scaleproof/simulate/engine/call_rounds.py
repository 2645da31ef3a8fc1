"""Collective calls in the event engine, compiled: each rank goes through its rounds by itself, and enters the next when
what it sends and receives in this one is done."""

from __future__ import annotations

from scaleproof.simulate.compiled import compiled, inlined
from scaleproof.simulate.engine.event_queue import ROUND, push
from scaleproof.simulate.engine.flow_network import NONE
from scaleproof.simulate.engine.messages import append, drop, flow, launch, new_message, queued_bytes, unlink
from scaleproof.simulate.engine.tables import ARRIVED, OF_CALL, State


@compiled
def next_round(state: State, number: int) -> bool:
    """A participant enters the next round of its call; False: there is none."""
    person, schedules = state.participants[number], state.schedules
    if person.round == NONE:
        person.phase, person.turn = schedules.first[person.schedule], 0
    else:
        person.turn += 1
        if person.turn == schedules.phases[person.phase].times:
            person.phase, person.turn = person.phase + 1, 0
    person.round += 1
    if person.phase == schedules.first[person.schedule + 1]:
        return False
    row = schedules.phases[person.phase].row + number - person.first
    person.receiving, person.sending = schedules.ranks[row].receives, 0
    for entry in range(schedules.ranks[row].sends, schedules.ranks[row + 1].sends):
        _send(state, number, entry)
    if person.early != NONE:
        _take_early(state, number)
    if not person.receiving and not person.sending:
        _work(state, number)
    return True


@inlined
def _send(state: State, sender: int, entry: int) -> None:
    person, content = state.participants[sender], state.schedules.messages[entry]
    number = new_message(state.messages, state.counts, OF_CALL, content)
    message = state.messages[number]
    message.nbytes, message.mark = content.nbytes, person.round
    message.receiver = person.first + content.destination
    if queued_bytes(state.streams, content.stream, content.nbytes) > content.buffer:
        message.sender = sender
        person.sending += 1
    if content.nbytes > content.buffer and state.participants[message.receiver].round != person.round:
        _keep(state, number)
    else:
        launch(state, number)


@inlined
def _keep(state: State, number: int) -> None:
    """The message waits until its receiver is in its round."""
    people, messages = state.participants, state.messages
    append(messages.behind, people.early, people.latest, messages[number].receiver, number)


@compiled
def _take_early(state: State, participant: int) -> None:
    """Messages of the round that was just entered: those that have arrived are received, others leave now."""
    people, messages, person = state.participants, state.messages, state.participants[participant]
    before, number = NONE, person.early
    while number != NONE:
        message = messages[number]
        behind = message.behind
        if message.mark != person.round:
            before = number
        else:
            unlink(messages.behind, people.early, people.latest, participant, before, number)
            if message.state == ARRIVED:
                person.receiving -= 1
                drop(messages, state.counts, number)
            else:
                launch(state, number)
        number = behind


@compiled
def arrive(state: State, number: int) -> None:
    """The message is received, or waits until its receiver is in its round."""
    message = state.messages[number]
    receiver, sender = message.receiver, message.sender
    person = state.participants[receiver]
    if person.round != message.mark:
        message.state = ARRIVED
        _keep(state, number)
    else:
        drop(state.messages, state.counts, number)
        person.receiving -= 1
        if not person.receiving and not person.sending:
            _work(state, receiver)
    if sender != NONE:
        person = state.participants[sender]
        person.sending -= 1
        if not person.receiving and not person.sending:
            _work(state, sender)


@inlined
def _work(state: State, number: int) -> None:
    """The round ends after the rank's work."""
    person = state.participants[number]
    own = state.schedules.ranks[state.schedules.phases[person.phase].row + number - person.first]
    if own.core == NONE or own.work == 0.0:
        push(state.queue, state.clock[0] + own.work, ROUND, number)
    else:
        flow(state, own.core, own.work * own.speed, own.speed, -1 - number)
