"""Message rate over ucx; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_message_rate_ucx = benchmark_of("message_rate", "ucx")
