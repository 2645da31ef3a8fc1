"""Flow control between two ranks: a message with immediate data uses a receive request of the peer, and may be sent
only while one is known to be posted."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

RESERVE = 4
"""Receive requests kept for messages that need no credit: CREDIT and LEAVING."""
NUMBER_BITS, CREDIT_BITS = 21, 8
NUMBERS, MAX_CREDITS = 1 << NUMBER_BITS, (1 << CREDIT_BITS) - 1


class Kind(IntEnum):
    """What the immediate data of a message announces."""

    DATA = 0
    """A whole message, as the payload."""
    FILLED = 1
    """The oldest granted piece of a large message lies in the receiver's region."""
    GRANT = 2
    """Where a piece of a large message may be written."""
    CREDIT = 3
    """Nothing but credits."""
    SHORT = 4
    """A short message beside `send` and `recv`."""
    LEAVING = 5
    """The last message of a rank that closes."""
    WAITING = 6
    """A large message has waited for a grant for a while. The receiver learns of it even when it expects a small
    one."""


def pack(kind: Kind, credits: int, number: int) -> int:
    """32 bits of immediate data; `number` is taken modulo NUMBERS."""
    return kind << (NUMBER_BITS + CREDIT_BITS) | credits << NUMBER_BITS | number % NUMBERS


def unpack(word: int) -> tuple[Kind, int, int]:
    """Kind, credits, number."""
    return Kind(word >> (NUMBER_BITS + CREDIT_BITS)), word >> NUMBER_BITS & MAX_CREDITS, word % NUMBERS


@dataclass(slots=True)
class Credits:
    """Credits of one queue pair with `depth` receive requests on each side. `available`: what this side may use;
    `owed`: what it has to return."""

    depth: int
    available: int = 0
    owed: int = 0

    def __post_init__(self) -> None:
        self.available = self.depth - RESERVE

    def use(self) -> bool:
        """Use one of the peer's receive requests; False when none is known to be free."""
        if not self.available:
            return False
        self.available -= 1
        return True

    def reposted(self) -> None:
        """Count an own receive request that is posted again after a message with a credit has used it."""
        self.owed += 1

    def return_owed(self) -> int:
        """Number of credits to return to the peer with the next message."""
        returned = min(self.owed, MAX_CREDITS)
        self.owed -= returned
        return returned

    def add(self, count: int) -> None:
        """Add credits that the peer has returned."""
        self.available += count

    @property
    def due(self) -> bool:
        """Whether half of the credits are owed to the peer: they must then be returned even without another message."""
        return 2 * self.owed >= self.depth - RESERVE
