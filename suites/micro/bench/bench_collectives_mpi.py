"""All collectives over mpi; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_collectives_mpi = benchmark_of("collectives", "mpi")
