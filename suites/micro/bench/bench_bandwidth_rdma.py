"""Bandwidth of one direction over rdma; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_bandwidth_rdma = benchmark_of("bandwidth", "rdma")
