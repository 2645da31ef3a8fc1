"""What strategy `pipeline` refuses, in one line that says which value would do."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from tests.short_form import train_case


def case(minibatch: int = 16, ranks: int = 4, fields: dict[str, Any] | None = None, **options: Any) -> None:
    strategy = {"name": "pipeline", "stages": 4, "micro_batches": 4, **options}
    train_case(
        strategy=strategy,
        transport="tcp",
        workload="small_gpt",
        minibatch=minibatch,
        ranks=ranks,
        **(fields or {}),
    )


def test_a_case_that_fits_is_taken() -> None:
    case()
    case(scheme="chimera", ranks=8, minibatch=32)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"stages": 3}, "3 stages do not divide 4 ranks; 2 or 4 would do"),
        ({"minibatch": 18}, "18 does not divide into 4 micro-batches; 16 or 20 would do"),
        ({"scheme": "chimaera"}, "unknown scheme; did you mean 'chimera'?"),
        ({"scheme": "chimera", "stages": 5, "ranks": 5}, "an odd number of stages 5 does not fit; 4 or 6 would do"),
        ({"scheme": "chimera", "micro_batches": 3, "minibatch": 12}, "micro-batches 3 does not fit; 2 or 4 would do"),
        ({"scheme": "chimera_halving", "minibatch": 4}, "a micro-batch of 1 samples has no halves; 8 would do"),
        ({"scheme": "pipedream_2bw", "micro_batches": 2}, "at least as many micro-batches as the 4 stages"),
        ({"stages": 40, "ranks": 40, "minibatch": 160}, "40 stages, and small_gpt can be cut into"),
        ({"forward_ms": 4.0}, "forward_ms and backward_ms go together"),
        ({"forward_ms": 4.0, "backward_ms": 8.0}, "is for replayed compute"),
        ({"fields": {"seconds": 2.0}}, "the ranks of a pipeline take the same steps"),
        ({"fields": {"framework": "tensorflow"}}, "keeps parameters in memory of its own"),
    ],
)
def test_what_does_not_fit_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message.replace("(", r"\(")):
        case(**options)
