"""Latency over grpc_mpi; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_latency_grpc_mpi = benchmark_of("latency", "grpc_mpi")
