"""Both directions at once over gloo; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_bidirectional_gloo = benchmark_of("bidirectional", "gloo")
