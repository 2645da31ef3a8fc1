"""Incast to one receiver over grpc_shm; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_incast_grpc_shm = benchmark_of("incast", "grpc_shm")
