"""Message rate over shm, plain buffers; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_message_rate_shm_plain = benchmark_of("message_rate", "shm_plain")
