"""Both directions at once over shm, plain buffers; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_bidirectional_shm_plain = benchmark_of("bidirectional", "shm_plain")
