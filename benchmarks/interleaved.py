"""One run of all arms: blocks of launches, each block in a random order of its own, every launch in fresh processes.
First the settings of the peers are tried in such blocks, then all arms are measured, each size of a peer under the
setting that was fastest there."""

from __future__ import annotations

import random
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path

from benchmarks.arms import SIZES, Arm
from benchmarks.launches import BOUNDS, Launch, NotMeasured, bounds, launches, obstacle
from benchmarks.tuning import SHIPPED, Setting, Sizes, Trial, best, grid

Used = list[tuple[Setting, tuple[int, ...]]]
"""The settings of an arm, each with its sizes."""


@dataclass(slots=True)
class Measured:
    """Launches of every arm, in seconds by size, in the order of the blocks; the settings that were tried and those in
    use; and the reasons why launches are missing."""

    launches: int
    seed: int
    samples: dict[Arm, list[Sizes]] = field(default_factory=lambda: defaultdict(list))
    missing: dict[Arm, list[str]] = field(default_factory=lambda: defaultdict(list))
    trials: dict[Arm, list[Trial]] = field(default_factory=dict)
    used: dict[Arm, Used] = field(default_factory=dict)

    def seconds(self, arm: Arm, size: int) -> list[float]:
        """One value per launch."""
        return [sample[size] for sample in self.samples.get(arm, [])]

    def setting(self, arm: Arm, size: int) -> str:
        """Name of the setting in use at a size."""
        return next((setting.name for setting, sizes in self.used.get(arm, []) if size in sizes), SHIPPED.name)


def measure(
    number: int, seed: int, report: Callable[[str], None], tuning: int, names: Collection[str] = ()
) -> Measured:
    """Run all blocks: `tuning` of the settings, then `number` of the arms (only those of these names, and the bounds).
    Records of the launches live in a temporary folder."""
    measured, shuffler, numbers = Measured(number, seed), random.Random(seed), count()
    with tempfile.TemporaryDirectory(prefix="scaleproof-bench-") as folder:
        arms = {arm: launch for arm, launch in launches(Path(folder), seed).items() if not names or arm.name in names}
        measured.trials = {arm: [Trial(setting) for setting in grid(arm)] for arm in arms if _choice(arm)}
        for block in range(tuning):
            tasks = [
                partial(_try, trial, arms[arm], numbers) for arm, trials in measured.trials.items() for trial in trials
            ]
            _run(tasks, shuffler, report, f"settings of peers, block {block + 1} of {tuning}")
        for arm in arms:
            measured.used[arm] = best(measured.trials[arm], SIZES) if _choice(arm) else [(grid(arm)[0], SIZES)]
        for block in range(number):
            tasks = [partial(_launch, measured, arm, launch, numbers) for arm, launch in arms.items()]
            tasks.append(partial(_bounds, measured))
            _run(tasks, shuffler, report, f"block {block + 1} of {number}")
    return measured


def _choice(arm: Arm) -> bool:
    """Whether there is more than one setting to try here."""
    return len(grid(arm)) > 1 and not obstacle(arm)


def _run(
    tasks: Sequence[Callable[[], None]], shuffler: random.Random, report: Callable[[str], None], title: str
) -> None:
    report(f"{title}: {len(tasks)} launches")
    for task in shuffler.sample(tasks, len(tasks)):
        task()


def _try(trial: Trial, launch: Launch, numbers: count[int]) -> None:
    try:
        trial.launches.append(launch(trial.setting, SIZES, next(numbers)))
    except NotMeasured as error:
        trial.why.append(str(error))


def _launch(measured: Measured, arm: Arm, launch: Launch, numbers: count[int]) -> None:
    """A launch per setting in use; together they give one value of every size. Each runs all sizes, as it did when it
    was chosen and as arms without a choice do: the largest size decides what memory a program has, and its pages."""
    sample: Sizes = {}
    try:
        for setting, sizes in measured.used[arm]:
            seconds = launch(setting, SIZES, next(numbers))
            sample |= {size: seconds[size] for size in sizes}
    except NotMeasured as error:
        measured.missing[arm].append(str(error))
        return
    measured.samples[arm].append(sample)


def _bounds(measured: Measured) -> None:
    for arm, sizes in bounds(SIZES).items():
        measured.samples[arm].append(sizes)


def median_rate(seconds: Sequence[float], nbytes: int) -> float:
    """Bytes per second: algbw as nccl-tests defines it for all_reduce, bandwidth one way for a transfer."""
    return nbytes / statistics.median(seconds)


def rate(measured: Measured, arm: Arm, nbytes: int) -> float:
    """Bytes per second of an arm: its median launch, but of a bound the fastest."""
    seconds = measured.seconds(arm, nbytes)
    return nbytes / min(seconds) if arm in BOUNDS else median_rate(seconds, nbytes)


def settings_tried(trials: Mapping[Arm, Sequence[Trial]], used: Mapping[Arm, Used]) -> list[dict[str, object]]:
    """A row per arm, setting and size: seconds of its launches, and whether it is the one in use there."""
    chosen = {(arm, setting.name, size) for arm, each in used.items() for setting, sizes in each for size in sizes}
    return [
        {
            "arm": arm.name,
            "ranks": arm.ranks,
            "operation": arm.operation,
            "setting": trial.setting.name,
            "environment": dict(trial.setting.environment),
            "options": dict(trial.setting.options),
            "nbytes": size,
            "seconds": trial.seconds(size),
            "failed": trial.why,
            "used": (arm, trial.setting.name, size) in chosen,
        }
        for arm, each in trials.items()
        for trial in each
        if trial.launches or trial.why
        for size in SIZES
    ]
