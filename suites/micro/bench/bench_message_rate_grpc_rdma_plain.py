"""Message rate over rdma, plain buffers; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_message_rate_grpc_rdma_plain = benchmark_of("message_rate", "grpc_rdma_plain")
