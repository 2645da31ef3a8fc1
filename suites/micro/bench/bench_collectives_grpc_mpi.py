"""All collectives over grpc_mpi; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_collectives_grpc_mpi = benchmark_of("collectives", "grpc_mpi")
