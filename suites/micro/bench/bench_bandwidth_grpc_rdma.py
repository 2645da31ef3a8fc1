"""Bandwidth of one direction over grpc+rdma; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_bandwidth_grpc_rdma = benchmark_of("bandwidth", "grpc_rdma")
