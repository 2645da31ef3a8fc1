"""Both directions at once over rdma, plain buffers; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_bidirectional_grpc_rdma_plain = benchmark_of("bidirectional", "grpc_rdma_plain")
