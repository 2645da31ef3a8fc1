"""Both directions at once over tcp; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_bidirectional_tcp = benchmark_of("bidirectional", "tcp")
