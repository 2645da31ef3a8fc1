"""Message rate over tcp; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_message_rate_tcp = benchmark_of("message_rate", "tcp")
