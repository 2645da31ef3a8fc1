"""Message rate over gloo; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_message_rate_gloo = benchmark_of("message_rate", "gloo")
