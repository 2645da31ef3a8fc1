"""Flow control between two ranks: a message with immediate data uses a receive request of the peer, and may go only
while one is known to be posted."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

RESERVE = 4
"""Receive requests kept for messages that need no credit: what gives credits back, and the last word."""
NUMBER_BITS, CREDIT_BITS = 21, 8
NUMBERS, MOST = 1 << NUMBER_BITS, (1 << CREDIT_BITS) - 1


class Kind(IntEnum):
    """What the immediate data of a message announce."""

    DATA = 0
    """A whole message, as the payload."""
    FILLED = 1
    """The oldest granted piece of a large message lies in the receiver's region."""
    GRANT = 2
    """Where a piece of a large message may be written."""
    CREDIT = 3
    """Nothing but credits."""
    NOTE = 4
    """A short message beside `send` and `recv`."""
    LEAVING = 5
    """The last word of a rank that closes."""
    WAITING = 6
    """A large message has waited for a place for a while; so the receiver learns of it even when it expects a small
    one."""


def pack(kind: Kind, credits: int, number: int) -> int:
    """32 bits of immediate data; `number` is taken modulo NUMBERS."""
    return kind << (NUMBER_BITS + CREDIT_BITS) | credits << NUMBER_BITS | number % NUMBERS


def unpack(word: int) -> tuple[Kind, int, int]:
    """Kind, credits, number."""
    return Kind(word >> (NUMBER_BITS + CREDIT_BITS)), word >> NUMBER_BITS & MOST, word % NUMBERS


@dataclass(slots=True)
class Credits:
    """Both directions of one lane with `depth` receive requests on each side."""

    depth: int
    left: int = 0
    owed: int = 0

    def __post_init__(self) -> None:
        self.left = self.depth - RESERVE

    def take(self) -> bool:
        """Use one of the peer's receive requests; False when none is known to be free."""
        if not self.left:
            return False
        self.left -= 1
        return True

    def posted(self) -> None:
        """An own receive request that a paid message had used is posted again."""
        self.owed += 1

    def give(self) -> int:
        """How many to tell the peer with the message that goes now."""
        given = min(self.owed, MOST)
        self.owed -= given
        return given

    def got(self, count: int) -> None:
        """The peer told so many."""
        self.left += count

    @property
    def due(self) -> bool:
        """Half of what the peer may use is owed to it: it must be told even when nothing else goes its way."""
        return 2 * self.owed >= self.depth - RESERVE
