"""All collectives over tcp_100mbit; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_collectives_tcp_100mbit = benchmark_of("collectives", "tcp_100mbit")
