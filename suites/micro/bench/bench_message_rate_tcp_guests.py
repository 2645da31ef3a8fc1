"""Message rate over tcp_guests; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_message_rate_tcp_guests = benchmark_of("message_rate", "tcp_guests")
