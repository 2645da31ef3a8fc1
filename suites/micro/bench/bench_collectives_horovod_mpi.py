"""All collectives over horovod_mpi; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_collectives_horovod_mpi = benchmark_of("collectives", "horovod_mpi")
