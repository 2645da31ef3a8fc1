"""Latency over ucx; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_latency_ucx = benchmark_of("latency", "ucx")
