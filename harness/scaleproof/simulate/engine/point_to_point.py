"""Sends and receives between tasks in the event engine, compiled. A message and a receive meet in a box, which is one
tag of one rank: each message goes to the earliest receive that takes its source, and each receive takes the earliest
message, as in MPI (The MPI Forum, MPI 4.1, section 3.5)."""

from __future__ import annotations

from scaleproof.simulate.engine.event_queue import TASK, push
from scaleproof.simulate.engine.flow_network import NONE
from scaleproof.simulate.engine.messages import append, drop, launch, new_message, queued_bytes, unlink
from scaleproof.simulate.engine.tables import ANY, ARRIVED, HELD, OF_TASKS, State
from scaleproof.simulate.fair_rates import compiled


@compiled
def send(state: State, task: int) -> None:
    """Starts a send. It ends when the sender's buffer has taken the message, or else when the message has arrived. A
    message that is larger than the buffer leaves when its receive has started (rendezvous)."""
    tasks, messages, boxes = state.tasks, state.messages, state.boxes
    nbytes, stream, box = tasks.amount[task], tasks.stream[task], tasks.box[task]
    message = new_message(messages, OF_TASKS, tasks.route[task], nbytes, tasks.highest[task], tasks.delay[task], stream)
    messages.mark[message] = tasks.source[task]
    if queued_bytes(state.streams, stream, nbytes) > tasks.buffer[task]:
        messages.sender[message] = task
    else:
        push(state.queue, state.clock[0], TASK, task, 0)
    receiver = _earliest_receive(state, box, tasks.source[task])
    messages.receiver[message] = receiver
    if receiver == NONE:
        append(messages.next_in_box, boxes.message, boxes.last_message, box, message)
    if receiver != NONE or nbytes <= tasks.buffer[task]:
        launch(state, message)


@compiled
def receive(state: State, task: int) -> None:
    """Starts a receive. It ends when its message has arrived."""
    tasks, messages, boxes = state.tasks, state.messages, state.boxes
    box = tasks.box[task]
    message = _earliest_message(state, box, tasks.source[task])
    if message == NONE:
        append(tasks.behind, boxes.receive, boxes.last_receive, box, task)
        return
    messages.receiver[message] = task
    if messages.state[message] == ARRIVED:
        drop(messages, message)
        push(state.queue, state.clock[0], TASK, task, 0)
    elif messages.state[message] == HELD:
        launch(state, message)


@compiled
def delivered(state: State, message: int) -> None:
    """The message has arrived: its receive and its send end; without a receive it stays in its box."""
    messages, now = state.messages, state.clock[0]
    if messages.sender[message] != NONE:
        push(state.queue, now, TASK, messages.sender[message], 0)
    if messages.receiver[message] == NONE:
        messages.state[message] = ARRIVED
        return
    push(state.queue, now, TASK, messages.receiver[message], 0)
    drop(messages, message)


@compiled
def _earliest_receive(state: State, box: int, source: int) -> int:
    """Takes the first receive of a box out of it that a message from `source` may go to; NONE: none waits."""
    tasks, boxes = state.tasks, state.boxes
    before, task = NONE, boxes.receive[box]
    while task != NONE and tasks.source[task] != source and tasks.source[task] != ANY:
        before, task = task, tasks.behind[task]
    if task != NONE:
        unlink(tasks.behind, boxes.receive, boxes.last_receive, box, before, task)
    return int(task)


@compiled
def _earliest_message(state: State, box: int, source: int) -> int:
    """Takes the first message of a box out of it that a receive from `source` takes; NONE: there is none."""
    messages, boxes = state.messages, state.boxes
    before, message = NONE, boxes.message[box]
    while message != NONE and messages.mark[message] != source and source != ANY:
        before, message = message, messages.next_in_box[message]
    if message != NONE:
        unlink(messages.next_in_box, boxes.message, boxes.last_message, box, before, message)
    return int(message)
