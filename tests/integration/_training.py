"""What the training tests share: a case, and one launch of it on forked ranks, read back."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from scaleproof.core.context import RankContext
from scaleproof.core.recorder import read_events
from scaleproof.programs import train
from scaleproof.rank.unsupervised_ranks import run_ranks
from scaleproof.spec.case import TrainCase
from tests.short_form import case_from

BASE = {
    "suite": "test",
    "experiment": "test",
    "arm": "test",
    "program": "train",
    "ranks": 1,
    "strategy": "local_only",
    "workload": "dnn_digits",
    "workload.data": "digits",
    "minibatch": 64,
    "steps": 30,
    "warmup": 0,
    "learning_rate": 0.05,
    "strategy.bucket_mib": 0.05,
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """One launch: events per rank, rank 0's parameters (empty when not kept), checks of all ranks."""

    events: list[np.ndarray]
    parameters: np.ndarray
    failed_checks: list[dict[str, Any]]

    def values(self, event: str, rank: int = 0) -> np.ndarray:
        """The values of an event on a rank, in order."""
        rows = self.events[rank]
        event_values: np.ndarray = rows["value"][rows["event"] == event.encode()]
        return event_values

    def count(self, event: str, rank: int = 0) -> int:
        """How often an event was recorded."""
        return int((self.events[rank]["event"] == event.encode()).sum())


def case_of(**fields: Any) -> TrainCase:
    """A case from what differs from BASE."""
    case = case_from(BASE | fields)
    assert isinstance(case, TrainCase)
    return case


def launch(folder: Path, case: TrainCase, timeout_s: float = 60.0) -> Outcome:
    """Train on forked ranks; asserts that all of them succeeded."""

    def body(context: RankContext) -> None:
        train.run(context)
        np.save(folder / f"events-{context.rank}.npy", read_events(context.recorder.path))
        np.save(
            folder / f"failed-{context.rank}.npy",
            np.array([str(check) for check in context.checks if not check["passed"]]),
        )
        for name, path in context.artifacts.items():
            (folder / name).write_bytes(path.read_bytes())

    folder.mkdir(exist_ok=True, parents=True)
    assert run_ranks(case, body, timeout_s) == [""] * case.ranks
    parameters = folder / "parameters.npy"
    return Outcome(
        [np.load(folder / f"events-{rank}.npy") for rank in range(case.ranks)],
        np.load(parameters) if parameters.exists() else np.empty(0, np.float32),
        [text for rank in range(case.ranks) for text in np.load(folder / f"failed-{rank}.npy").tolist()],
    )
