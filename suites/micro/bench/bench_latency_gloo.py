"""Latency over gloo; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_latency_gloo = benchmark_of("latency", "gloo")
