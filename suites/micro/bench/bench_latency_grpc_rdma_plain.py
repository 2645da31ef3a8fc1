"""Latency over rdma, plain buffers; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_latency_grpc_rdma_plain = benchmark_of("latency", "grpc_rdma_plain")
