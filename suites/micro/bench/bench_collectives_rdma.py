"""All collectives over rdma; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_collectives_rdma = benchmark_of("collectives", "rdma")
