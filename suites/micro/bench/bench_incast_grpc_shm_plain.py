"""Incast to one receiver over grpc_shm, plain buffers; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_incast_grpc_shm_plain = benchmark_of("incast", "grpc_shm_plain")
