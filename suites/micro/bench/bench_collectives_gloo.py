"""All collectives over gloo; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_collectives_gloo = benchmark_of("collectives", "gloo")
