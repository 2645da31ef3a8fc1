"""Metrics of this paper only: control messages, and who moves and adds the parameters, as our own programs count them;
bytes that the kernel counted on the links of nodes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.made_up import Event, ImpossibleValue, MadeUp, Wanted, possible
from scaleproof.claims.metrics import Metric
from scaleproof.claims.metrics_replicas import MODEL_EVENTS, workers_of
from scaleproof.claims.metrics_wire import link_bytes
from scaleproof.claims.sample_columns import columns
from scaleproof.core.record_schema import Record
from scaleproof.spec.case import AnyCase, TrainCase
from scaleproof.workloads.case_network import network_of
from scaleproof.workloads.learner import sizes_of

FLOAT = 4
"""Bytes of a parameter."""
CONTROL_ROOM = 0.01
"""Share of a gradient that the job server's node may carry for each worker and step, and still carry control alone: it
has room for headers, acknowledgements and barriers (chosen by us)."""


def control_per_epoch(record: Record, samples: pd.DataFrame) -> float | None:
    """control_per_epoch = messages without any part of a model / workers / epochs

    Of all ranks, as the program sends them (suite mimatrix2018): a start and an end for each worker and epoch make 2.
    Barriers around the training do not count.
    """
    epochs, workers = _epochs(record.case), _workers(record.case)
    return len(columns(record, samples).of("control")) / (workers * epochs) if epochs and workers else None


def control_growth(block: Sequence[Launch], _floor: float | None = None) -> float | None:
    """control_growth = exponent b of control messages per worker and epoch ~ workers^b

    The slope of a line through the logarithms of [control_per_epoch](control_per_epoch.md) and of the number of
    workers, over the launches of one repetition (suite mimatrix2018). 0: O(1); 1: they grow as the workers do. None for
    a single number of workers, and where nothing is sent.
    """
    found = [
        (math.log(_workers(launch.record.case)), math.log(each))
        for launch in block
        if (each := control_per_epoch(launch.record, launch.samples))
    ]
    places = np.array([place for place, _ in found])
    if not len(places) or np.ptp(places) == 0:
        return None
    slope = float(np.polyfit(places, [count for _, count in found], 1)[0])
    return round(slope, 9) + 0.0


def handshakes_per_tensor(record: Record, samples: pd.DataFrame) -> float | None:
    """handshakes_per_tensor = control messages of workers, beside those to the job server / workers / steps / tensors

    What a worker asks its peers before it writes into their memory, for each tensor of the network (suite
    mimatrix2018). 0 where all addresses are known from the start.
    """
    case, rows = record.case, columns(record, samples)
    epochs, workers = _epochs(case), _workers(case)
    if not epochs or not workers or not isinstance(case, TrainCase):
        return None
    control = rows.of("control")
    asked = int((rows.rank[control] >= case.ranks - workers).sum()) - workers * epochs
    return asked / (workers * _steps(case) * len(network_of(case).parameter_shapes))


def models_through_server(record: Record, samples: pd.DataFrame) -> float | None:
    """models_through_server = bytes that servers send and receive / 2 / workers / steps / bytes of the parameters

    As the programs move them, of ranks that train nothing (suite mimatrix2018): the job server, or a parameter server.
    0: no part of a model passes it; 1: a gradient of each worker in each step, and parameters back, so that its bytes
    grow as the workers do.
    """
    case, rows = record.case, columns(record, samples)
    workers = _workers(case)
    if not workers or workers == case.ranks:
        return None
    moved = rows.of(*MODEL_EVENTS, "wait")
    served = moved[rows.rank[moved] < case.ranks - workers]
    return float(rows.nbytes[served].sum()) / (2 * workers * _steps(case) * _model_nbytes(case))


def reduction_ratio(record: Record, samples: pd.DataFrame) -> float | None:
    """reduction_ratio = additions of the rank that adds most / steps / (|w| (N-1)/N)

    Of N workers that share the reduction of |w| gradients each adds |w| (N-1)/N (suite mimatrix2018), which is 1 here;
    parts that are one element longer than others make it a little more. A rank that adds all gradients itself has N^2 /
    (N-1).
    """
    case, rows = record.case, columns(record, samples)
    reduced, workers = rows.of("reduced"), _workers(case)
    if not len(reduced) or workers < 2:
        return None
    most = np.bincount(rows.rank[reduced], weights=rows.value[reduced]).max()
    return float(most) / (_steps(case) * _model_nbytes(case) / FLOAT * (workers - 1) / workers)


def control_path_only(record: Record, samples: pd.DataFrame) -> float | None:
    """control_path_only = 1 if the job server's node carried less than 1 % of a gradient for each worker and step, else
    0

    Bytes that the kernel counted on the links of rank 0's node, in the direction that carried more (suite
    mimatrix2018), headers, acknowledgements and barriers included. A job server that carries parameters has more than
    100 %. The value exists where each rank has a node of its own.
    """
    counted, workers = link_bytes(record), _workers(record.case)
    if counted is None or not workers:
        return None
    return float(counted[0] < CONTROL_ROOM * workers * _steps(record.case) * _model_nbytes(record.case))


def models_at_busiest_node(record: Record, samples: pd.DataFrame) -> float | None:
    """models_at_busiest_node = bytes on the links of the busiest node / steps / bytes of the parameters

    Bytes that the kernel counted in the direction that carried more (suite mimatrix2018). N workers that reduce a part
    each carry 2 (N-1)/N of the parameters in a step, one parameter server N; headers are up to 10 % more. The value
    exists where each rank has a node of its own.
    """
    counted = link_bytes(record)
    if counted is None or not _workers(record.case):
        return None
    return max(counted.values()) / (_steps(record.case) * _model_nbytes(record.case))


def _workers(case: AnyCase) -> int:
    """Ranks that train; 0 for a case whose strategy is no program of each rank."""
    return case.workers if isinstance(case, TrainCase) and case.replicas is not None else 0


def _steps(case: AnyCase) -> int:
    """Of each worker, warm-up included."""
    return int(case.value("warmup") + case.value("steps"))


def _epochs(case: AnyCase) -> int:
    """0 for a strategy that has none."""
    of_epoch = case.value("strategy.epoch_steps")
    return math.ceil(_steps(case) / of_epoch) if of_epoch else 0


def _model_nbytes(case: AnyCase) -> int:
    assert isinstance(case, TrainCase)
    return FLOAT * sum(sizes_of(network_of(case), case.shrink))


STEP = Event("step")
MOST = 1000
"""Made-up messages of a worker."""


def made_up_control(wanted: Wanted) -> MadeUp:
    """Workers that send so many messages an epoch."""
    return _messages(wanted, possible(wanted.known) * _workers(wanted.case) * _epochs(wanted.case))


def made_up_growth(wanted: Wanted) -> MadeUp:
    """A block in which this exponent is met by whole messages, 20 an epoch for the fewest workers."""
    workers, fewest = _workers(wanted.case), min(map(_workers, wanted.block))
    return _messages(wanted, 20 * _epochs(wanted.case) * workers * (workers / fewest) ** wanted.known)


def made_up_handshakes(wanted: Wanted) -> MadeUp:
    """Workers that ask so often for each tensor."""
    case = wanted.case
    assert isinstance(case, TrainCase)
    asked = possible(wanted.known) * _workers(case) * _steps(case) * len(network_of(case).parameter_shapes)
    return _messages(wanted, asked + _workers(case) * _epochs(case))


def _messages(wanted: Wanted, count: float) -> MadeUp:
    """So many control messages, of workers alike as far as it goes."""
    workers = workers_of(wanted.case)
    each, more = divmod(round(count), len(workers))
    if each > MOST:
        raise ImpossibleValue(f"{each} messages of each worker")
    return MadeUp((STEP, *[Event("control", ranks=workers)] * each, Event("control", ranks=workers[:more])))


def made_up_served(wanted: Wanted) -> MadeUp:
    """A server that sends so much."""
    case = wanted.case
    nbytes = round(2 * possible(wanted.known) * _workers(case) * _steps(case) * _model_nbytes(case))
    return MadeUp((STEP, Event("send", ranks=(0,), nbytes=nbytes)))


def made_up_reduction(wanted: Wanted) -> MadeUp:
    """A worker that adds so much, and no other."""
    case, workers = wanted.case, _workers(wanted.case)
    if workers < 2:
        raise ImpossibleValue("one worker adds nothing")
    each = _steps(case) * _model_nbytes(case) / FLOAT * (workers - 1) / workers
    return MadeUp((STEP, Event("reduced", ranks=(case.ranks - 1,), value=possible(wanted.known) * each)))


def made_up_control_path(wanted: Wanted) -> MadeUp:
    """A job server whose node carries nothing (1), or the gradients of all workers (0)."""
    value, case = possible(wanted.known, 0, 1), wanted.case
    if min(value, 1 - value) > 0.05:
        raise ImpossibleValue("a job server carries parameters or not")
    carried = 0 if value > 0.5 else _workers(case) * _steps(case) * _model_nbytes(case)
    return MadeUp((STEP,), wire_bytes=carried)


def made_up_busiest(wanted: Wanted) -> MadeUp:
    """Nodes that all carry so much."""
    carried = round(possible(wanted.known) * _steps(wanted.case) * _model_nbytes(wanted.case))
    return MadeUp((STEP,), wire_bytes=carried)


METRICS = [
    Metric("control_per_epoch", "messages", "lower", launch=control_per_epoch, own_count=True, made_up=made_up_control),
    Metric(
        "control_growth",
        "1",
        "lower",
        block=control_growth,
        own_count=True,
        made_up=made_up_growth,
        range=(-math.inf, math.inf),
    ),
    Metric(
        "handshakes_per_tensor",
        "messages",
        "lower",
        launch=handshakes_per_tensor,
        own_count=True,
        made_up=made_up_handshakes,
    ),
    Metric("models_through_server", "1", "lower", launch=models_through_server, own_count=True, made_up=made_up_served),
    Metric("reduction_ratio", "1", "lower", launch=reduction_ratio, own_count=True, made_up=made_up_reduction),
    Metric("control_path_only", "bool", "higher", launch=control_path_only, made_up=made_up_control_path),
    Metric("models_at_busiest_node", "1", "lower", launch=models_at_busiest_node, made_up=made_up_busiest),
]
