"""All collectives over rdma, plain buffers; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_collectives_grpc_rdma_plain = benchmark_of("collectives", "grpc_rdma_plain")
