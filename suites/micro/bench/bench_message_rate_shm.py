"""Message rate over shm; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_message_rate_shm = benchmark_of("message_rate", "shm")
