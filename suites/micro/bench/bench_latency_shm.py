"""Latency over shm; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_latency_shm = benchmark_of("latency", "shm")
