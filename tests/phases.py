"""A parallel run (`pytest -n logical`) in two phases: first the tests of each file on one worker, so that fixtures of a
module are set up once; then, on one worker and one after the other, those that need the machine for themselves."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from xdist.scheduler import LoadScheduling
    from xdist.workermanage import WorkerController

SMALL = ("tests/unit/", "tests/property/")
ALONE = (
    "tests/cluster/test_slurm_slow_node.py",
    "tests/integration/test_bounds_suites.py",
    "tests/integration/test_calibration_launches.py",
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
    "tests/integration/test_replica_arithmetic.py",
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
    "tests/integration/test_ci_workflow.py",
    "tests/property/test_mutated_claims.py",
    "tests/property/test_mutated_suites.py",
    "tests/property/test_stats_comparisons.py",
    "tests/property/test_cost_fits.py",
)
"""Files that come first, so that no worker is left with a long one at the end of the first phase."""


class Phase(IntEnum):
    """When a test runs, and beside which others."""

    BY_FILE = 0
    ALONE = 1


def phase_of(node_id: str) -> Phase:
    """The phase of a test."""
    return Phase.ALONE if file_of(node_id) in ALONE else Phase.BY_FILE


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
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScheduling:
    from xdist.scheduler import LoadScheduling

    class Phases(LoadScheduling):
        """A worker starts a test only when it knows the next one or that there is none. So before the last phase all
        workers but one are told to end, and the last one gets the rest when they have."""

        collection: Any
        maxschedchunk: Any

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
            self.pending.sort()  # what a worker that crashed had not begun comes last otherwise
            if self._left_of_file():
                if not node.shutting_down and len(self.node2pending[node]) < 2:
                    self._send_tests(node, len(self.pending))
            else:
                self._schedule_last_phase()

        def _schedule_last_phase(self) -> None:
            working = [node for node in self.nodes if not node.shutting_down]
            last = working.pop(0) if working and self.pending else None
            for other in working:
                other.shutdown()
            if last and not any(self.node2pending[other] for other in self.nodes if other is not last):
                self._send_tests(last, len(self.pending))
                last.shutdown()

        def _send_tests(self, node: WorkerController, num: int) -> None:
            """In the first phase those of one file."""
            super()._send_tests(node, min(num, self._left_of_file() or num))

        def _left_of_file(self) -> int:
            """How many tests of the next file of the first phase no worker has got yet."""
            assert self.collection is not None
            names = [self.collection[index] for index in self.pending]
            if not names or phase_of(names[0]) is not Phase.BY_FILE:
                return 0
            return sum(file_of(name) == file_of(names[0]) for name in names)

    return Phases(config, log)
