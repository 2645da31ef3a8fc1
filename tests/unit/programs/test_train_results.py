"""What is said of replicas that were compared."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from scaleproof.programs.train_results import check_equal, comparison_in_words


@pytest.mark.parametrize(
    ("holders", "said"),
    [
        ([4], "the same bits on 4 ranks"),
        ([4, 4], "the same bits on 4 ranks"),
        ([4, 2, 2], "the same bits in each of 3 groups of replicas, of 2 to 4 ranks"),
        ([2, 2], "the same bits in each of 2 groups of replicas, of 2 ranks"),
    ],
)
def test_no_more_is_said_than_was_compared(holders: list[int], said: str) -> None:
    assert comparison_in_words(holders, world_size=4) == said


@pytest.mark.parametrize(
    ("other", "said"), [("own", "the same bits on 2 ranks"), ("0" * 32, "rank 1 differs from rank 0")]
)
def test_ranks_compare_the_bits_of_their_replicas(other: str, said: str) -> None:
    checks: list[tuple[str, bool, str]] = []

    def exchange(name: str, rank: int, size: int, own: dict[str, str], seconds: float) -> list[dict[str, str]]:
        return [own, {label: digest if other == "own" else other for label, digest in own.items()}]

    context = SimpleNamespace(
        rendezvous=SimpleNamespace(exchange=exchange), rank=0, world_size=2, check=lambda *each: checks.append(each)
    )
    group = SimpleNamespace(name="all", indices=[0])
    training: Any = SimpleNamespace(
        context=context,
        model=SimpleNamespace(values=lambda: [np.ones(3, np.float32)]),
        strategy=SimpleNamespace(replica_groups=[group]),
    )
    check_equal(training, "final_parameters")
    assert checks == [("final_parameters", other == "own", said)]
