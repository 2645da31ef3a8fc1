"""Bandwidth of one direction over grpc_mpi; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_bandwidth_grpc_mpi = benchmark_of("bandwidth", "grpc_mpi")
