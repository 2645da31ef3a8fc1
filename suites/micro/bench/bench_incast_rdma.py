"""Incast to one receiver over rdma; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_incast_rdma = benchmark_of("incast", "rdma")
