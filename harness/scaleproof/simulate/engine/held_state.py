"""The state of the event engine as compiled code takes it at once: numba looks at every table that a call brings, which
takes longer than what most calls do (9 us and 1.4 us)."""

from __future__ import annotations

from typing import Any

from numba import types
from numba.experimental import structref

from scaleproof.simulate.compiled import allocating
from scaleproof.simulate.engine import event_loop
from scaleproof.simulate.engine.tables import State


@structref.register
class _HeldType(types.StructRef):
    def preprocess_fields(self, fields: Any) -> Any:
        return tuple((name, types.unliteral(kind)) for name, kind in fields)


class HeldState(structref.StructRefProxy):  # type: ignore[misc]
    """Holds the tables of a state; one that has grown since then is another table."""

    def __new__(cls, state: State) -> HeldState:
        held: HeldState = structref.StructRefProxy.__new__(cls, state)
        return held


structref.define_proxy(HeldState, _HeldType, ["state"])


@allocating  # it counts references to the tables
def run(held: Any, last: int, margin: int, until: float) -> int:
    """See event_loop.run."""
    return event_loop.run(held.state, last, margin, until)
