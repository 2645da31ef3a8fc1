"""Bandwidth of one direction over grpc_shm; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_bandwidth_grpc_shm = benchmark_of("bandwidth", "grpc_shm")
