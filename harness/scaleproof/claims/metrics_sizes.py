"""Metrics per message size of `transfer` and `collective`, as nccl-tests defines them, and the bytes a rank was asked
to send."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd

from scaleproof.claims.finished_launch import SECOND, times_count
from scaleproof.claims.made_up import Event, ImpossibleValue, MadeUp, MakeUp, Wanted, events, possible
from scaleproof.claims.sample_columns import Columns, columns, largest, medians, numbered, of_last_launch
from scaleproof.core.record_schema import Record
from scaleproof.spec.case import CollectiveCase, TransferCase
from scaleproof.spec.emulated import shrunk, true_bytes

GIGA = 1e9
COLUMNS = ("operation", "nbytes", "samples", "time_s", "algbw_gbs", "busbw_gbs", "first_s")
PER_SIZE = {
    "transfer": {"transfer_latency": "time_s", "transfer_bandwidth": "algbw_gbs", "first_call_s": "first_s"},
    "collective": {
        "collective_latency": "time_s",
        "algbw": "algbw_gbs",
        "busbw": "busbw_gbs",
        "first_call_s": "first_s",
    },
}
"""Of each program, its metrics per message size and their columns in `by_size`."""
WHOLE = ("all_reduce", "reduce_scatter", "all_gather", "broadcast")


def bus_factor(operation: str, ranks: int) -> float:
    """busbw / algbw: how many times the array's bytes cross the busiest link (nccl-tests, doc/PERFORMANCE.md)."""
    if operation == "all_reduce":
        return 2 * (ranks - 1) / ranks
    if operation in ("reduce_scatter", "all_gather"):
        return (ranks - 1) / ranks
    return 1.0


@of_last_launch
def by_size(record: Record, samples: pd.DataFrame) -> pd.DataFrame:
    """One row per message size (COLUMNS): median one-way time of a transfer, or median over calls of the slowest rank;
    bandwidths in 10^9 B/s; `first_s` the first call of the size, in none of the others (NaN where it was not recorded).
    Not to be changed."""
    case, rows = record.case, columns(record, samples)
    if not times_count(record) or not isinstance(case, TransferCase | CollectiveCase):
        return pd.DataFrame(columns=COLUMNS)
    operation, ways = ("transfer", 2) if isinstance(case, TransferCase) else (case.operation, 1)
    calls = rows.timed(operation)
    nbytes, times = rows.nbytes[calls], rows.end[calls] - rows.start[calls]
    if isinstance(case, CollectiveCase):
        call = numbered(nbytes, rows.step[calls])
        nbytes, (_, times) = nbytes[np.unique(call, return_index=True)[1]], largest(call, times)
    sizes, middle, counts = medians(nbytes, times)
    first = _first(rows)
    table = pd.DataFrame({"nbytes": sizes, "samples": counts, "time_s": middle / ways / SECOND})
    table.insert(0, "operation", operation)
    table["first_s"] = [first.get(int(size), np.nan) / ways / SECOND for size in sizes]
    table["algbw_gbs"] = table["nbytes"] / table["time_s"] / GIGA
    table["busbw_gbs"] = table["algbw_gbs"] * bus_factor(operation, case.ranks)
    return table[list(COLUMNS)]


def _first(rows: Columns) -> dict[int, float]:
    """Length in ns of the first call of each size, on the rank where it took longest."""
    uses = rows.of("first_use")
    return dict(
        zip(*(part.tolist() for part in largest(rows.nbytes[uses], rows.end[uses] - rows.start[uses])), strict=True)
    )


def at_size(record: Record, samples: pd.DataFrame, column: str, nbytes: int) -> float | None:
    """One value of `by_size`; None when the launch has no such size."""
    table = by_size(record, samples)
    values = table.loc[table["nbytes"] == nbytes, column]
    return float(values.iloc[0]) if len(values) and not pd.isna(values.iloc[0]) else None


def bytes_per_rank_ratio(record: Record, samples: pd.DataFrame) -> float | None:
    """Bytes that the busiest rank was asked to send in all all-reduces, over 2V(N-1)/N, the least that an all-reduce of
    V bytes needs.

    ratio = bytes that the busiest rank was asked to send / (calls x 2V(N-1)/N)

    The calls are the timed, warm-up and verified all-reduces of a launch, of V bytes each on N ranks. Our own transport
    counts the bytes when it is asked to send them: the value checks the schedule. What interfaces counted is in
    [wire_bytes_ratio](wire_bytes_ratio.md). Ring and halving-doubling reach 1 when N divides the number of V's elements
    (halving-doubling also needs N to be a power of two). A tree does not reach 1. At N = 2 every algorithm has 1.
    Source: das2016 (part-reduce and part-broadcast), MPICH's cost models.

    A value of 1 is the optimum. Less is impossible for a sum over all ranks.
    """
    case = record.case
    if not isinstance(case, CollectiveCase) or case.operation != "all_reduce" or case.ranks < 2:
        return None
    sent = true_bytes(
        case, np.array([traffic["nbytes"] for traffic in record.transport.get("traffic", []) if traffic], np.int64)
    )
    reduced = reduced_nbytes(record, samples)
    if len(sent) < case.ranks or not reduced:
        return None
    return float(sent.max()) / (reduced * bus_factor(case.operation, case.ranks))


def reduced_nbytes(record: Record, samples: pd.DataFrame) -> float:
    """Bytes of the arrays of all calls of a launch of `collective`: timed, warm-up and verified ones."""
    case = record.case
    assert isinstance(case, CollectiveCase)
    rows = columns(record, samples)
    calls = rows.of(case.operation)
    called = rows.nbytes[calls[rows.rank[calls] == 0]]
    if not len(called):
        return 0.0
    # Verified calls move bytes but have no sample: every size has as many as the others.
    verified = sum(check.rank == 0 and check.name.startswith(f"{case.operation}.") for check in record.checks)
    sizes = np.unique(called)
    return float(called.sum()) + float(sizes.sum()) * verified / len(sizes)


def making(column: str) -> MakeUp:
    """Launches in which a column of `by_size` has the wanted value at the wanted size."""
    return partial(_making, column=column)


def _making(wanted: Wanted, column: str) -> MadeUp:
    case, nbytes, value = wanted.case, wanted.nbytes or 0, possible(wanted.known, 1e-30)
    if not isinstance(case, TransferCase | CollectiveCase):
        raise ImpossibleValue("only programs transfer and collective have values by size")
    operation, ways = ("transfer", 2) if isinstance(case, TransferCase) else (case.operation, 1)
    factor = bus_factor(operation, case.ranks) if column == "busbw_gbs" else 1.0
    seconds = value if column in ("time_s", "first_s") else nbytes * factor / (value * GIGA)
    took = Event(operation, 0.0, seconds * ways, nbytes=nbytes)
    return events(took, Event("first_use", 0.0, seconds * ways, nbytes=nbytes, warmup=True))


def made_up_bytes(wanted: Wanted) -> MadeUp:
    """A launch of one all-reduce whose busiest rank was asked to send this many times the least."""
    case, nbytes = wanted.case, 1 << 30
    if not isinstance(case, CollectiveCase) or case.ranks < 2:
        raise ImpossibleValue("only all-reduces have this ratio")
    sent = round(possible(wanted.known) * nbytes * bus_factor(case.operation, case.ranks))
    traffic = [{"nbytes": shrunk(sent, case.shrink)}] * case.ranks
    call = Event(case.operation, 0.0, 1.0, nbytes=nbytes)
    return MadeUp((call,), transport={"traffic": traffic})


PAGES = {
    "transfer_latency": """
        transfer_latency(n) = median over iterations of (round trip of n bytes) / 2

        The time of one direction of a ping-pong between rank 0 and rank 1, measured on rank 0. The echo is verified
        before and after, outside the timed calls. Half a round trip is the latency of one direction only if both
        directions are alike.
        """,
    "transfer_bandwidth": """
        transfer_bandwidth(n) = n / transfer_latency(n)

        It may exceed the rate of the link: on one machine there is no link, and a message that fits the processor's
        caches moves faster than memory does. Compare it with the memory-copy bandwidth of the same run.
        """,
    "collective_latency": """
        collective_latency(n) = median over calls of (the slowest rank's call on n bytes)

        Every timed call follows a barrier, so all ranks start together, apart from the barrier's own skew. n is the
        size of the whole array, as in nccl-tests. nccl-tests averages over ranks by default. We take the slowest rank,
        because a synchronous step waits for it.
        """,
    "algbw": """
        algbw(n) = n / collective_latency(n)

        Bytes of the array per second, as a caller sees them. The value falls with the number of ranks even on a perfect
        network; use [busbw](busbw.md) to compare with a link. Source: NVIDIA nccl-tests, doc/PERFORMANCE.md.
        """,
    "busbw": """
        busbw = algbw x { all_reduce 2(N-1)/N; reduce_scatter, all_gather (N-1)/N; broadcast 1 }

        Bytes that the busiest link must carry per second under an optimal algorithm. It can be compared with the link's
        rate at any N. Source: NVIDIA nccl-tests, doc/PERFORMANCE.md.

        It may exceed the link's rate when ranks share memory or caches, when the network reduces in its switches, or
        when the topology has more than one link per rank. An algorithm that sends more than the optimum (a tree) moves
        more bytes than busbw shows.
        """,
    "first_call_s": """
        first_call_s = first call of a message size, on the rank where it took longest; for `transfer` half of the first
        round trip

        This is the call that is verified before the warm-up. It touches memory, registers buffers or negotiates names,
        and no other metric includes it. Ranks meet at a barrier before a collective call. Compare it with
        [collective_latency](collective_latency.md) or [transfer_latency](transfer_latency.md) of the same size: a
        transport may be fast only for a buffer that it has used before. Each launch has one such call per size, so look
        at several launches.
        """,
}
"""Text of the pages in docs/metrics/ of the metrics per message size."""
