"""What a rank that a fault of its case kills leaves behind for its peers, its successor and the supervisor."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

from scaleproof.core.atomic_write import read_json, write_json


@dataclass(frozen=True, slots=True)
class KilledRank:
    """`step`: that it did not finish; `zero_ns`: when the timed region of the rank began, on the monotonic clock;
    `after_s`: how many s later a successor takes its place (None: it has none)."""

    step: int
    zero_ns: int
    after_s: float | None = None

    def write(self, folder: Path, rank: int) -> None:
        """Into the launch's folder, just before the end."""
        write_json(_path(folder, rank), asdict(self))


def killed_rank(folder: Path, rank: int) -> KilledRank | None:
    """What the rank has left; None: no fault has killed it."""
    left = read_json(_path(folder, rank))
    return KilledRank(**left) if left else None


def is_gone(folder: Path, rank: int) -> bool:
    """Whether the rank was killed and nobody takes its place."""
    left = killed_rank(folder, rank)
    return left is not None and left.after_s is None


def _path(folder: Path, rank: int) -> Path:
    return folder / f"killed-{rank}.json"
