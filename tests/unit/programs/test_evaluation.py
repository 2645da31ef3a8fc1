"""When an evaluation of replicas was: at the moment of those ranks whose parameters are evaluated."""

from __future__ import annotations

import numpy as np
import pytest

from scaleproof.programs.evaluation import Evaluation
from scaleproof.strategies.replica import Snapshot
from tests.short_form import train_case


@pytest.mark.parametrize(("strategy", "ranks", "moment"), [("server", 3, 1.0), ("cut_off", 3, 1.0), ("gossip", 3, 9.0)])
def test_a_server_need_not_wait_for_workers_to_be_evaluated(strategy: str, ranks: int, moment: float) -> None:
    case = train_case(
        transport="tcp", workload="dnn_digits", data="digits", minibatch=48, ranks=ranks, strategy=strategy
    )
    moments = (1.0, 5.0, 9.0)
    snapshots = Evaluation(tuple(Snapshot(0, int(10 * each), each, np.zeros(1, np.float32)) for each in moments))
    of_model = snapshots.of_model(case)
    assert max(each.moment for each in of_model) == moment
    assert max(each.step for each in of_model) == 10 * moment
