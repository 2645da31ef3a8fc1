"""Message rate over grpc_mpi; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_message_rate_grpc_mpi = benchmark_of("message_rate", "grpc_mpi")
