"""Both directions at once over grpc_mpi; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_bidirectional_grpc_mpi = benchmark_of("bidirectional", "grpc_mpi")
