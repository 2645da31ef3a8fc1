"""Bandwidth of one direction over rdma, plain buffers; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_bandwidth_grpc_rdma_plain = benchmark_of("bandwidth", "grpc_rdma_plain")
