"""Options of strategies that are programs of each rank: what does not fit is told by its field."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from tests.short_form import train_case

BASE: dict[str, Any] = {"transport": "tcp", "workload": "dnn_digits", "data": "digits", "minibatch": 48, "ranks": 4}


@pytest.mark.parametrize(
    ("strategy", "more", "wrong"),
    [
        ({"name": "server", "dedicated_servers": 4}, {}, "leave no worker"),
        ({"name": "server", "bound": -1}, {}, "-1 is not allowed; it must be at least 0"),
        ({"name": "server", "backup": 1}, {}, "update: synchronous"),
        ({"name": "server", "update": "synchronous", "backup": 3}, {}, "leave no gradient"),
        ({"name": "server", "update": "synchronous", "bound": 1}, {}, "applied one by one"),
        ({"name": "server"}, {"minibatch": 64}, "64 does not divide over 3 workers"),
        ({"name": "probabilistic_barrier", "sample": 3}, {}, "3 peers of 2 other workers"),
        ({"name": "elastic_averaging", "tau": 0}, {}, "0 is not allowed; it must be at least 1"),
        ({"name": "gossip"}, {"ranks": 1}, "at least 2 ranks"),
        ({"name": "gossip", "form": "push", "rounds": 2}, {}, "a push has one peer"),
        ({"name": "gossip", "weight": 2.0}, {}, "is for what peers push"),
        ({"name": "gossip", "form": "push", "reads": "one_sided"}, {}, "takes what is pushed"),
        ({"name": "gossip", "sent": "with_momentum"}, {"momentum": 0.0}, "there is none to send"),
        ({"name": "elastic_averaging", "dedicated_servers": 0}, {}, "set exchange: parameters"),
        ({"name": "elastic_averaging", "exchange": "locked", "dedicated_servers": 2}, {}, "that of one server"),
        ({"name": "gossip"}, {"framework": "tensorflow"}, "use torch"),
        ({"name": "gossip"}, {"transport": "horovod"}, "not 'horovod': it has no sends and receives"),
        ({"name": "gossip"}, {"step_delay": "gama:1,1"}, "did you mean 'gamma'"),
        ({"name": "sync"}, {"collective": "ring", "seconds": 3}, "leave it out"),
        ({"name": "triggered_gossip"}, {}, "missing"),
        ({"name": "cut_off"}, {"ranks": 1}, "at least 2 ranks"),
        ({"name": "cut_off", "predictor": "static", "share": 1.2}, {}, "1.2 is not allowed"),
        ({"name": "cut_off", "share": 0.5}, {}, "is of predictor 'static', not 'elfving'"),
        ({"name": "cut_off", "predictor": "learned"}, {}, "give one, or take 'elfving'"),
        ({"name": "cut_off", "predictor": "orakel"}, {}, "oracle"),
        ({"name": "triggered_gossip", "theta": -0.1}, {}, "-0.1 is not allowed; it must be at least 0"),
        ({"name": "triggered_gossip", "theta": 0.1, "decay": 0}, {}, "0 is not allowed; it must be more than 0"),
        ({"name": "triggered_gossip", "theta": 0.1, "measure": "l1"}, {}, "l1"),
        ({"name": "triggered_gossip", "theta": 0.1, "averaged": "before_step"}, {}, "after a step; leave it out"),
        ({"name": "triggered_gossip", "theta": 0.1}, {"compute": "replay"}, "use gossip with a period"),
        ({"name": "job_server", "epoch_steps": 0}, {}, "0 is not allowed; it must be at least 1"),
        ({"name": "job_server"}, {"minibatch": 1, "ranks": 1}, "a job server needs a worker"),
        ({"name": "job_server"}, {"seconds": 3}, "epochs have a number of steps"),
        (
            {"name": "job_server", "gradients": "through_server", "handshakes": "each_tensor"},
            {},
            "write into no peer's memory",
        ),
    ],
)
def test_what_does_not_fit_is_one_line(strategy: dict[str, Any], more: dict[str, Any], wrong: str) -> None:
    with pytest.raises((ValidationError, ValueError)) as raised:
        train_case(**{**BASE, "strategy": strategy, **more})
    assert wrong in str(raised.value)


@pytest.mark.parametrize(
    ("strategy", "update"),
    [
        ({"name": "elastic_averaging", "exchange": "parameters", "moves": "together"}, "synchronous"),
        ({"name": "elastic_averaging", "moves": "one_by_one"}, "asynchronous"),
        ({"name": "server", "update": "together"}, "synchronous"),
        ({"name": "server", "update": "each"}, "asynchronous"),
    ],
)
def test_the_words_of_earlier_records_are_still_read(strategy: dict[str, Any], update: str) -> None:
    assert train_case(**{**BASE, "strategy": strategy, "ranks": 3}).value("strategy.update") == update
