"""All collectives over tcp_guests; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_collectives_tcp_guests = benchmark_of("collectives", "tcp_guests")
