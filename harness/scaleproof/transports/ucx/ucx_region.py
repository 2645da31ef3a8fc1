"""A region of UCX's memory: addresses and keys of every rank's part."""

from __future__ import annotations

from ctypes import c_void_p
from dataclasses import dataclass, field
from typing import Any

from scaleproof.transports.contract import Region


@dataclass(slots=True)
class UcxRegion(Region):
    """`offset` is its address in the process that owns it. `everyone`: every rank's address and packed key; `keys`:
    those unpacked here, by rank."""

    everyone: list[dict[str, Any]] = field(default_factory=list, repr=False)
    keys: dict[int, c_void_p] = field(default_factory=dict, repr=False)

    @property
    def key(self) -> c_void_p:
        """The owner's memory key, unpacked here."""
        return self.keys[self.rank]

    def locate(self, offset: int, nbytes: int) -> tuple[int, c_void_p]:
        """Remote address and key of `nbytes` at an offset; raises TransportError when they are outside of the
        region."""
        self.check_inside(offset, nbytes)
        return self.offset + offset, self.key
