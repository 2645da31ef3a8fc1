"""Latency over tcp; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_latency_tcp = benchmark_of("latency", "tcp")
