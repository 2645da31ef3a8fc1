"""All collectives over rdma_100mbit; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_collectives_rdma_100mbit = benchmark_of("collectives", "rdma_100mbit")
