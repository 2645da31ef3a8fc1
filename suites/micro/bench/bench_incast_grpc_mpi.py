"""Incast to one receiver over grpc_mpi; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_incast_grpc_mpi = benchmark_of("incast", "grpc_mpi")
