"""Sends and receives between tasks in the event engine, compiled. A message and a receive meet in a box, which is one
tag of one rank: each message goes to the earliest receive that takes its source, and each receive takes the earliest
message, as in MPI (The MPI Forum, MPI 4.1, section 3.5)."""

from __future__ import annotations

from scaleproof.simulate.compiled import compiled, inlined
from scaleproof.simulate.engine.event_queue import TASK, push
from scaleproof.simulate.engine.flow_network import NONE
from scaleproof.simulate.engine.messages import append, drop, launch, new_message, queued_bytes, unlink
from scaleproof.simulate.engine.tables import ANY, ARRIVED, HELD, OF_TASKS, State


@compiled
def send(state: State, number: int) -> None:
    """Starts a send. It ends when the sender's buffer has taken the message, or else when the message has arrived. A
    message that is larger than the buffer leaves when its receive has started (rendezvous)."""
    task = state.tasks[number]
    new = new_message(state.messages, state.counts, OF_TASKS, task)
    message = state.messages[new]
    message.nbytes, message.mark = task.amount, task.source
    if queued_bytes(state.streams, task.stream, task.amount) > task.buffer:
        message.sender = number
    else:
        push(state.queue, state.clock[0], TASK, number)
    message.receiver = _earliest_receive(state, task.box, task.source)
    if message.receiver == NONE:
        append(state.messages.next_in_box, state.boxes.message, state.boxes.last_message, task.box, new)
    if message.receiver != NONE or task.amount <= task.buffer:
        launch(state, new)


@compiled
def receive(state: State, number: int) -> None:
    """Starts a receive. It ends when its message has arrived."""
    task = state.tasks[number]
    found = _earliest_message(state, task.box, task.source)
    if found == NONE:
        append(state.tasks.behind, state.boxes.receive, state.boxes.last_receive, task.box, number)
        return
    message = state.messages[found]
    message.receiver = number
    if message.state == ARRIVED:
        drop(state.messages, state.counts, found)
        push(state.queue, state.clock[0], TASK, number)
    elif message.state == HELD:
        launch(state, found)


@inlined
def delivered(state: State, number: int) -> tuple[int, int]:
    """The message has arrived: the tasks that end, its send if that waits, and its receive (NONE: none). Without a
    receive it stays in its box."""
    message = state.messages[number]
    if message.receiver == NONE:
        message.state = ARRIVED
    else:
        drop(state.messages, state.counts, number)
    return message.sender, message.receiver


@compiled
def _earliest_receive(state: State, number: int, source: int) -> int:
    """Takes the first receive of a box out of it that a message from `source` may go to; NONE: none waits."""
    tasks, boxes = state.tasks, state.boxes
    before, task = NONE, boxes[number].receive
    while task != NONE and tasks[task].source != source and tasks[task].source != ANY:
        before, task = task, tasks[task].behind
    if task != NONE:
        unlink(tasks.behind, boxes.receive, boxes.last_receive, number, before, task)
    return int(task)


@compiled
def _earliest_message(state: State, number: int, source: int) -> int:
    """Takes the first message of a box out of it that a receive from `source` takes; NONE: there is none."""
    messages, boxes = state.messages, state.boxes
    before, message = NONE, boxes[number].message
    while message != NONE and messages[message].mark != source and source != ANY:
        before, message = message, messages[message].next_in_box
    if message != NONE:
        unlink(messages.next_in_box, boxes.message, boxes.last_message, number, before, message)
    return int(message)
