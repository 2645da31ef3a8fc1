"""Both directions at once over grpc+rdma; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_bidirectional_grpc_rdma = benchmark_of("bidirectional", "grpc_rdma")
