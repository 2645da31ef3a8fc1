"""Latency over grpc+rdma; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_latency_grpc_rdma = benchmark_of("latency", "grpc_rdma")
