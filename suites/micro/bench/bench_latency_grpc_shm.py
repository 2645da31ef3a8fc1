"""Latency over grpc_shm; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_latency_grpc_shm = benchmark_of("latency", "grpc_shm")
