"""Message rate over mpi; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_message_rate_mpi = benchmark_of("message_rate", "mpi")
