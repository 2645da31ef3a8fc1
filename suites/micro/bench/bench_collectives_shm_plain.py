"""All collectives over shm, plain buffers; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_collectives_shm_plain = benchmark_of("collectives", "shm_plain")
