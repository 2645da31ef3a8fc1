"""What to do about each failure; docs/failures.md says more."""

from __future__ import annotations

ADVICE = {
    "rank_killed": (
        "SIGKILL by nobody is usually the kernel running out of memory (see `dmesg`); any other signal: "
        "the rank's log has its stack"
    ),
    "rank_stopped": "something stopped the process (SIGSTOP, Ctrl-Z, a debugger); the record's stall has its stack",
    "rank_raised": "the rank's log has the traceback",
    "rank_exited": "a library ended the process without an exception; read the end of the rank's log",
    "rank_silent": (
        "the process exists but its heartbeat has stopped; look for a swapping machine or a library "
        "that holds the interpreter's lock"
    ),
    "peer_lost": "a rank lost its peer although no rank was seen to die; read both ranks' logs",
    "transport_error": "an operation of the transport failed; the rank's log has the traceback",
    "rendezvous_timeout": "a rank waited for another one before any transport existed; read the other rank's log",
    "deadline": (
        "raise `deadline_s` of the experiment if the launch was only slow; the stacks of all ranks are in their logs"
    ),
    "start_failed": "the ranks never started; launcher.log has the reason",
    "check_failed": "the result is wrong, so its times mean nothing; the record's checks say which values differ",
    "diverged": "the loss is no finite number; lower the learning rate or check the data",
    "empty_result": "the program ended without a single sample; check its sizes, steps and iterations",
    "interrupted": "start the same command again: finished launches are kept",
    "not_runnable": "type `scaleproof doctor` to see what is missing",
    "disk_full": (
        "free space on the file system of the results folder and start the same command again: finished "
        "launches are kept"
    ),
    "wrong_interface": (
        "bind the transport to the requested interface, or name the interface that really carries the "
        "traffic in the case"
    ),
    "stalled": (
        "the record's stall names the rank that was silent first and what each other rank waited for; "
        "read that rank's stack"
    ),
    "preflight": "the record's preflight checks say what is wrong and what to do; its times do not count",
    "bad_input": (
        "the data are not what the case says; fetch or make them anew, or correct the expected checksum, rows or labels"
    ),
    "device_missing": "name a device, GID or interface that `scaleproof doctor` lists",
    "memlock": (
        "raise the limit on locked memory: `ulimit -l unlimited`, or LimitMEMLOCK of the service that starts the ranks"
    ),
    "remote_access": (
        "the peer's region has another key or is smaller: both sides must use the keys that they exchanged in this "
        "launch"
    ),
    "region_exhausted": "fewer or smaller tensors, or a larger registered region",
    "message_too_large": "split the message, raise the transport's limit where it has one, or use a transport without",
    "queue_overflow": (
        "more requests were posted than the queue holds; post fewer before waiting, or make the queue deeper"
    ),
    "node_lost": (
        "look at that node (power, network, its system log); the experiment goes on with the nodes that "
        "are left where they hold its ranks"
    ),
    "impossible_value": (
        "a measured value lies above its physical bound, so the measurement is wrong; read how the bound was taken"
    ),
}
