"""A parallel run (`pytest -n 2`) in two phases: first the tests that may share the machine, on every worker; then,
on one worker and one after the other, those that need the machine for themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from xdist.scheduler import LoadScheduling
    from xdist.workermanage import WorkerController

SHARING = ("tests/unit/", "tests/property/")
"""Tests in other folders start ranks, clusters or a browser and measure time."""


def shares_the_machine(node_id: str) -> bool:
    return node_id.startswith(SHARING)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The first phase's tests come first; the sort is stable, so that fixtures of a module are set up once."""
    items.sort(key=lambda item: not shares_the_machine(item.nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScheduling:
    from xdist.scheduler import LoadScheduling

    class TwoPhases(LoadScheduling):
        """A worker starts a test only when it knows the next one or that there is none. So at the end of the first
        phase all workers but one are told to end, and the last one gets the rest when they have."""

        def schedule(self) -> None:
            if self.collection is None:
                if not self._check_nodes_have_same_collection():
                    return
                self.collection = next(iter(self.node2collection.values()))
                self.pending[:] = range(len(self.collection))
                self.maxschedchunk = self.maxschedchunk or len(self.collection)
            for node in self.nodes:
                self.check_schedule(node)

        def check_schedule(self, node: WorkerController, duration: float = 0) -> None:
            if self._sharing_left():
                super().check_schedule(node, duration)
                return
            working = self._working()
            last = working.pop(0) if working and self.pending else None
            for other in working:
                other.shutdown()
            if last and not any(self.node2pending[other] for other in self.nodes if other is not last):
                self._send_tests(last, len(self.pending))
                last.shutdown()

        def _send_tests(self, node: WorkerController, num: int) -> None:
            self.pending.sort()  # what a worker that crashed had not begun comes last otherwise
            super()._send_tests(node, min(num, self._sharing_left() or num))

        def _sharing_left(self) -> int:
            """How many tests of the first phase no worker has got yet."""
            assert self.collection is not None
            return sum(shares_the_machine(self.collection[index]) for index in self.pending)

        def _working(self) -> list[WorkerController]:
            return [node for node in self.nodes if not node.shutting_down]

    return TwoPhases(config, log)
