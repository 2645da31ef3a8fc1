"""All collectives over tcp; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_collectives_tcp = benchmark_of("collectives", "tcp")
