"""All collectives over torch_mpi; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_collectives_torch_mpi = benchmark_of("collectives", "torch_mpi")
