"""A parallel run (`pytest -n logical`) in two phases: first the tests of each file on one worker, so that fixtures of a
module are set up once; then, on one worker and one after the other, those that need the machine for themselves. Tests
that wait most of the time run on one more worker than there are processors, beside the others."""

from __future__ import annotations

import os
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from xdist.scheduler import LoadScheduling
    from xdist.workermanage import WorkerController

SMALL = ("tests/unit/", "tests/property/")
WAITING = "tests/cluster/"
"""A real Slurm cluster: its tests wait for its timers."""
ALONE = (
    "tests/cluster/test_slurm_slow_node.py",
    "tests/integration/test_bounds_suites.py",
    "tests/integration/test_calibration_launches.py",
    "tests/integration/test_ci_workflow.py",
    "tests/integration/test_clock.py",
    "tests/integration/test_communication.py",
    "tests/integration/test_compare_runs.py",
    "tests/integration/test_faults.py",
    "tests/integration/test_guests.py",
    "tests/integration/test_handicap.py",
    "tests/integration/test_launch_surroundings.py",
    "tests/integration/test_netns.py",
    "tests/integration/test_remote.py",
    "tests/integration/test_replayed_launches.py",
    "tests/integration/test_sniff.py",
    "tests/integration/test_straggler.py",
    "tests/integration/test_tcp_shm.py",
    "tests/integration/test_watchdog.py",
)
"""Files whose tests judge times, or look at all processes and all shared memory of the machine."""
LONGEST = (
    "tests/cluster/test_slurm_disturbed.py",
    "tests/integration/test_conformance.py",
    "tests/integration/test_hosts.py",
    "tests/cluster/test_slurm_das2016.py",
    "tests/integration/test_rdma_training.py",
    "tests/integration/test_rdma.py",
    "tests/property/test_stats_comparisons.py",
    "tests/property/test_cost_fits.py",
)
"""Files that come first, so that no worker is left with a long one at the end of the first phase."""


class Phase(IntEnum):
    """When a test runs, and beside which others."""

    WAITING = 0
    BY_FILE = 1
    ALONE = 2


def phase_of(node_id: str) -> Phase:
    """The phase of a test."""
    file = file_of(node_id)
    if file in ALONE:
        return Phase.ALONE
    return Phase.WAITING if file.startswith(WAITING) else Phase.BY_FILE


def most_workers() -> int:
    """Workers for tests that compute."""
    return min(os.cpu_count() or 1, 4)


def file_of(node_id: str) -> str:
    """The file that a test stands in."""
    return node_id.partition("::")[0]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests in the order of their phases; the sort is stable, so that those of a file stay together. Small files come
    last in the first phase, which all workers then end at nearly the same time."""
    rank = {file: index for index, file in enumerate(LONGEST)}

    def order(item: pytest.Item) -> tuple[Phase, int, bool]:
        file = file_of(item.nodeid)
        return phase_of(item.nodeid), rank.get(file, len(LONGEST)), file.startswith(SMALL)

    items.sort(key=order)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """A worker for each processor; in a run of all tests one more, for those that wait."""
    return most_workers() + (not config.option.file_or_dir)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScheduling:
    from xdist.scheduler import LoadScheduling

    class Phases(LoadScheduling):
        """A worker starts a test only when it knows the next one or that there is none. So before the last phase all
        workers but one are told to end, and the last one gets the rest when they have."""

        collection: Any
        files: list[str]
        phases: list[Phase]
        for_waiting: Any = None
        """The worker that runs only tests that wait."""

        def schedule(self) -> None:
            if self.collection is None:
                if not self._check_nodes_have_same_collection():
                    return
                self.collection = next(iter(self.node2collection.values()))
                self.files = [file_of(name) for name in self.collection]
                self.phases = [phase_of(name) for name in self.collection]
                self.pending[:] = range(len(self.collection))
                if len(self.nodes) > most_workers():
                    self.for_waiting = self.nodes[0]
            for node in self.nodes:
                self.check_schedule(node)

        def check_schedule(self, node: WorkerController, duration: float = 0) -> None:
            self.pending.sort()  # what a worker that crashed had not begun comes last otherwise
            while not node.shutting_down and len(self.node2pending[node]) < 2:
                if tests := self._next_file(node):
                    self._send(node, tests)
                elif node is self.for_waiting:
                    node.shutdown()
                else:
                    break
            if all(self.phases[index] is Phase.ALONE for index in self.pending):
                self._schedule_last_phase()

        def _send(self, node: WorkerController, tests: list[int]) -> None:
            self.pending[:] = [index for index in self.pending if index not in tests]
            self.node2pending[node].extend(tests)
            node.send_runtest_some(tests)

        def _next_file(self, node: WorkerController) -> list[int]:
            """The tests of the next file for this worker, outside the last phase."""
            phases = {Phase.WAITING, Phase.BY_FILE}
            if self.for_waiting in self.node2pending:
                phases = {Phase.WAITING if node is self.for_waiting else Phase.BY_FILE}
            first = next((index for index in self.pending if self.phases[index] in phases), None)
            return [] if first is None else [index for index in self.pending if self.files[index] == self.files[first]]

        def _schedule_last_phase(self) -> None:
            working = [node for node in self.nodes if node is not self.for_waiting and not node.shutting_down]
            last = working.pop(0) if working and self.pending else None
            for other in working:
                other.shutdown()
            if last and not any(self.node2pending[other] for other in self.nodes if other is not last):
                self._send(last, list(self.pending))
                last.shutdown()

    return Phases(config, log)
