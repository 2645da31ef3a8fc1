"""Latency over mpi; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_latency_mpi = benchmark_of("latency", "mpi")
