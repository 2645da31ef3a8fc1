"""All collectives over ucx; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_collectives_ucx = benchmark_of("collectives", "ucx")
