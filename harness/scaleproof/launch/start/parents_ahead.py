"""Parents of the ranks of the next launches, which import together, each on a core, while no rank runs. Then they sleep
until their launch begins."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from scaleproof.core.launch_spec import LaunchSpec
from scaleproof.core.uninterrupted import uninterrupted
from scaleproof.launch.launchers.launcher_contract import Launcher
from scaleproof.launch.start.started_launcher import StartedLauncher, start
from scaleproof.launch.start.warm_parents import WarmParents
from scaleproof.launch.teardown import end_launch
from scaleproof.record.cgroups import memory_left
from scaleproof.record.host import available_mib, memory_mib, usable_cores

if TYPE_CHECKING:
    from scaleproof.spec.plan import PlannedLaunch

MOST = 4
EACH = 1 << 30
"""Bytes that a parent may take: one that has imported TensorFlow holds half of this."""


class Prepared(NamedTuple):
    """What a launcher needs to start."""

    folder: Path
    launch_spec: LaunchSpec
    launcher: Launcher
    variables: dict[str, str]


class _Begun(NamedTuple):
    prepared: Prepared
    started: StartedLauncher

    def end(self) -> None:
        if self.started.gate is not None:
            self.started.gate.close()
        end_launch(self.started.process, self.prepared.folder, self.prepared.launch_spec)


def has_room() -> bool:
    """Whether there is memory for another parent, so that none is missing to a launch: half of the machine's is free
    beside it, and twice that of all parents below the limit of the control group."""
    total, free, in_group = memory_mib() << 20, available_mib() << 20, memory_left()
    return free - EACH > total / 2 and (in_group is None or in_group > 2 * MOST * EACH)


class ParentsAhead:
    """`prepare` makes the folder of a launch whose parent can import before its turn; None for any other. `warm`: what
    others are forked from in their turn."""

    def __init__(self, prepare: Callable[[PlannedLaunch], Prepared | None], warm: WarmParents | None = None) -> None:
        self._prepare, self.warm = prepare, warm
        self._most = min(MOST, int(usable_cores()))
        self._next: Sequence[PlannedLaunch] = ()
        self._begun: dict[int, _Begun] = {}

    def expect(self, pending: Sequence[PlannedLaunch]) -> None:
        """The launches to come, in their order; the first is about to run."""
        self._next = list(islice(pending, 1, self._most))

    def launch_of(self, planned: PlannedLaunch) -> str | None:
        """The id of a launch whose parent has been started."""
        begun = self._begun.get(planned.order)
        return begun.prepared.launch_spec.launch if begun else None

    def take(self, launch: str) -> StartedLauncher | None:
        """The parent of a launch, which the caller ends from now on; none where it has ended by itself."""
        for order, begun in self._begun.items():
            if begun.prepared.launch_spec.launch == launch:
                del self._begun[order]
                if begun.started.process.poll() is None:
                    return begun.started
                begun.end()
                return None
        return None

    def start_next(self) -> list[StartedLauncher]:
        """Start those of the launches after it, up to one that cannot import ahead."""
        for planned in self._next:
            with uninterrupted():
                if not has_room() or not self._start(planned):
                    break
        return [begun.started for begun in self._begun.values()]

    def _start(self, planned: PlannedLaunch) -> bool:
        """Whether it was; what stands in the way of it is told in its own turn."""
        prepared = None
        try:
            if (prepared := self._prepare(planned)) is None:
                return False
            self._begun[planned.order] = _Begun(prepared, start(*prepared))
        except OSError:
            if prepared is not None:
                end_launch(None, prepared.folder, prepared.launch_spec)
                shutil.rmtree(prepared.folder, ignore_errors=True)
            return False
        return True

    def end_those_that_import(self) -> None:
        """Beside ranks nothing imports."""
        for order in [order for order, begun in self._begun.items() if not begun.started.has_imported]:
            self._end(order)

    def end(self, planned: PlannedLaunch) -> None:
        """End the parent, if there is one, of a launch that does not start after all."""
        self._end(planned.order)

    def close(self) -> None:
        """End those whose launch did not come."""
        for order in list(self._begun):
            self._end(order)
        if self.warm is not None:
            self.warm.close()

    def _end(self, order: int) -> None:
        with uninterrupted():
            if (begun := self._begun.pop(order, None)) is not None:
                begun.end()
                shutil.rmtree(begun.prepared.folder, ignore_errors=True)
