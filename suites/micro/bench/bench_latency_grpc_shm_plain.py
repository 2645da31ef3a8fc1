"""Latency over grpc_shm, plain buffers; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_latency_grpc_shm_plain = benchmark_of("latency", "grpc_shm_plain")
