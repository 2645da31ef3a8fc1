"""All collectives over shm; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_collectives_shm = benchmark_of("collectives", "shm")
