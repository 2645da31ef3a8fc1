"""Both directions at once over ucx; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_bidirectional_ucx = benchmark_of("bidirectional", "ucx")
