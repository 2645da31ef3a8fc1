"""All collectives over tcp_netns; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_collectives_tcp_netns = benchmark_of("collectives", "tcp_netns")
