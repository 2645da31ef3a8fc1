"""Message rate over grpc+rdma; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_message_rate_grpc_rdma = benchmark_of("message_rate", "grpc_rdma")
