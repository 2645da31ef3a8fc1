"""All collectives over ucc; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_collectives_ucc = benchmark_of("collectives", "ucc")
