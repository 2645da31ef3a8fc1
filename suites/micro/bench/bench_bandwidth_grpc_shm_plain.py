"""Bandwidth of one direction over grpc_shm, plain buffers; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_bandwidth_grpc_shm_plain = benchmark_of("bandwidth", "grpc_shm_plain")
