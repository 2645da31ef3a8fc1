"""Both directions at once over shm; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_bidirectional_shm = benchmark_of("bidirectional", "shm")
