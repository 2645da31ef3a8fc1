"""Made-up machine profiles, so that tests of verdicts have noise floors for their launches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from scaleproof.claims.metrics import METRICS, Metric
from scaleproof.claims.suite_metrics import suite_metrics
from scaleproof.record.machine import Floor, MachineProfile, write_profile
from scaleproof.spec.case import AnyCase
from scaleproof.spec.launch_kind import LaunchKind, kind_of
from scaleproof.spec.suite import Suite
from tools.mutated_files.any_floor import made_up_floor

COLLECTIVE = LaunchKind(program="collective", compute="none", way="loopback", transport="tcp", ranks=2)
TRAINING = LaunchKind(program="train", compute="real", way="loopback", transport="tcp", ranks=2)


def floor(
    metric: str, kind: LaunchKind = COLLECTIVE, nbytes: int | None = None, share: float = 0.0, spread: float = 0.0
) -> Floor:
    """One noise floor."""
    return made_up_floor(metric, kind, nbytes, share, spread)


def profile_of(*floors: Floor, machine: str = "m") -> MachineProfile:
    """A machine with these floors and no bounds."""
    return MachineProfile(machine=machine, code="d", measured_at="2026-01-01T00:00:00Z", floors=floors)


def calibrate_for(
    results: Path,
    cases: Iterable[AnyCase],
    share: float = 0.0,
    machine: str = "m",
    metrics: Mapping[str, Metric] = METRICS,
) -> None:
    """Write a profile that has a floor for every timing of launches of these cases, whatever shares their cores."""
    floors: dict[tuple[LaunchKind, str, int | None], Floor] = {}
    for case in cases:
        sizes = (None, *(case.value("sizes") or ()))
        for kind in filter(None, (kind_of(case, shared) for shared in (False, True))):
            for metric in metrics.values():
                if metric.timing:
                    floors |= {(kind, metric.name, size): floor(metric.name, kind, size, share) for size in sizes}
    write_profile(results, profile_of(*floors.values(), machine=machine))


def calibrate_for_suite(results: Path, suite: Suite, size: str, share: float = 0.0, machine: str = "m") -> None:
    """The same for all cases of a suite at one size, with the suite's own metrics."""
    experiments = [experiment for experiment in suite.experiments.values() if size in experiment.sizes]
    cases = [case for experiment in experiments for case in experiment.sizes[size].cases]
    calibrate_for(results, cases, share, machine, suite_metrics(suite.folder))
