"""Both directions at once over rdma; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_bidirectional_rdma = benchmark_of("bidirectional", "rdma")
