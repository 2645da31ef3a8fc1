"""Latency over shm, plain buffers; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_latency_shm_plain = benchmark_of("latency", "shm_plain")
