"""Both directions at once over mpi; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_bidirectional_mpi = benchmark_of("bidirectional", "mpi")
