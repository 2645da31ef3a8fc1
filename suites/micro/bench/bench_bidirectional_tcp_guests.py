"""Both directions at once over tcp_guests; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_bidirectional_tcp_guests = benchmark_of("bidirectional", "tcp_guests")
