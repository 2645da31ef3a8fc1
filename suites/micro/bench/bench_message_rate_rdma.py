"""Message rate over rdma; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_message_rate_rdma = benchmark_of("message_rate", "rdma")
