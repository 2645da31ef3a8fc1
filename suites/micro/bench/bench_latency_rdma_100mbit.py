"""Latency over rdma_100mbit; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_latency_rdma_100mbit = benchmark_of("latency", "rdma_100mbit")
