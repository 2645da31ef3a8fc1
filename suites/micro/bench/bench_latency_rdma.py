"""Latency over rdma; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_latency_rdma = benchmark_of("latency", "rdma")
