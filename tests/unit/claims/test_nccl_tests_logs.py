"""algbw and busbw are nccl-tests' (doc/PERFORMANCE.md): the same numbers that its published logs print beside their
times, up to the rounding of both columns."""

from __future__ import annotations

import pytest

from scaleproof.claims.metrics_sizes import by_size
from tests.unit.claims.claims_samples import record, samples

SUPERBENCH = "microsoft/superbenchmark@700d6501/tests/data/nccl_{}.log"
LOGS = [
    ("all_reduce", 8, 67108864, "584.5", "114.81", "200.91", SUPERBENCH.format("allreduce")),
    ("all_reduce", 8, 8589934592, "63896", "134.44", "235.26", SUPERBENCH.format("allreduce")),
    ("all_gather", 8, 1073741824, "4413.4", "243.29", "212.88", SUPERBENCH.format("allgather")),
    ("reduce_scatter", 8, 1073741824, "4203.0", "255.47", "223.54", SUPERBENCH.format("reducescatter")),
    ("broadcast", 8, 1073741824, "4769.2", "225.14", "225.14", SUPERBENCH.format("broadcast")),
    ("all_reduce", 4, 134217728, "18003", "7.46", "11.18", "rcgsheffield/sheffield_hpc@f60c6e60, CUDA 10.1"),
    ("all_reduce", 16, 134217728, "33403", "4.02", "7.53", "awsdocs/aws-deep-learning-amis@17d89aa1, EFA, P3dn"),
    ("all_reduce", 16, 8589934592, "33605", "255.62", "479.28", "aws-samples/awsome-distributed-training@7217859f"),
    ("all_gather", 16, 134217728, "808.3", "166.05", "155.67", "dstackai/dstack@511c318c, A3 Mega"),
]
"""Operation, GPUs, bytes of the whole array, time in us, algbw and busbw in GB/s as printed (out of place); source."""


@pytest.mark.parametrize(("operation", "gpus", "nbytes", "time_us", "algbw", "busbw", "where"), LOGS)
def test_bandwidths_are_those_that_nccl_tests_print(
    operation: str, gpus: int, nbytes: int, time_us: str, algbw: str, busbw: str, where: str
) -> None:
    case = {"program": "collective", "suite": "s", "experiment": "e", "arm": "a", "operation": operation}
    launch = record({**case, "ranks": gpus, "transport": "gloo", "sizes": [nbytes]})
    time_ms = float(time_us) / 1e3
    calls = samples(*((rank, operation, 0, 0, time_ms * (1 if rank else 0.5), nbytes) for rank in range(gpus)))
    [row] = by_size(launch, calls).to_dict("records")
    for column, printed in (("algbw_gbs", algbw), ("busbw_gbs", busbw)):
        rounding = half_unit(printed) + float(printed) * half_unit(time_us) / float(time_us)
        assert abs(row[column] - float(printed)) <= rounding * 1.01, where


def half_unit(printed: str) -> float:
    """Half a unit of the last digit: how far a printed number may be from the true one."""
    return 0.5 * 10.0 ** -len(printed.partition(".")[2])
