"""Failures of a verbs device by name: what each completion status means, and which failure code it becomes."""

from __future__ import annotations

from scaleproof.core.transport_errors import PeerLost, TransportError


class DeviceMissing(TransportError):
    """No device, port, GID or interface of that name; the message lists what exists."""

    code = "device_missing"


class MemlockTooSmall(TransportError):
    """The limit on locked memory does not allow the region to be registered."""

    code = "memlock"


class RemoteAccess(TransportError):
    """The peer's device refused: wrong key, outside of the region, or an operation that the region does not allow."""

    code = "remote_access"


class MessageTooLarge(TransportError):
    """One work request holds more than the port can move as one message."""

    code = "message_too_large"


class QueueOverflow(TransportError):
    """A queue has no room: more work requests were posted than it holds, or the peer has posted no receive request."""

    code = "queue_overflow"


FLUSHED = 5
"""IBV_WC_WR_FLUSH_ERR: for all requests in a queue after its first error; it does not say the cause."""

STATUSES: dict[int, tuple[str, type[TransportError], str]] = {
    1: (
        "LOC_LEN_ERR",
        MessageTooLarge,
        "a message does not fit into its receive request, or is longer than the port allows",
    ),
    2: ("LOC_QP_OP_ERR", TransportError, "the own queue pair cannot do this operation"),
    4: ("LOC_PROT_ERR", TransportError, "a buffer does not lie in the registered region"),
    5: ("WR_FLUSH_ERR", PeerLost, "the queue pair was broken by an error on the other side"),
    6: ("MW_BIND_ERR", TransportError, "a memory window could not be bound"),
    7: ("BAD_RESP_ERR", TransportError, "the peer's answer does not match the request"),
    8: ("LOC_ACCESS_ERR", TransportError, "the own region does not allow the peer's operation"),
    9: ("REM_INV_REQ_ERR", TransportError, "the peer's device does not accept this request"),
    10: ("REM_ACCESS_ERR", RemoteAccess, "the peer's device refused the access: wrong key or outside of its region"),
    11: ("REM_OP_ERR", TransportError, "the peer's device could not finish the request"),
    12: ("RETRY_EXC_ERR", PeerLost, "the peer's device does not answer"),
    13: ("RNR_RETRY_EXC_ERR", QueueOverflow, "the peer has posted no receive request for too long"),
    16: ("REM_ABORT_ERR", PeerLost, "the peer gave the operation up"),
    19: ("FATAL_ERR", TransportError, "the own device failed"),
    20: ("RESP_TIMEOUT_ERR", PeerLost, "the peer's device did not answer in time"),
    21: ("GENERAL_ERR", TransportError, "the own device failed without saying why"),
}
"""Completion status (enum ibv_wc_status) to its name, what it becomes, and what it says."""


def failure(status: int, peer: int, vendor: int = 0) -> TransportError:
    """What a completion with an error means for the rank that waits on it."""
    name, kind, meaning = STATUSES.get(status, (f"status {status}", TransportError, "an error without a name"))
    message = f"rank {peer}: {meaning} (completion {name}{f', vendor {vendor:#x}' if vendor else ''})"
    return PeerLost(peer, message) if issubclass(kind, PeerLost) else kind(message)
