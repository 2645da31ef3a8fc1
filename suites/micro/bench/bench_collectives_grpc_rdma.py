"""All collectives over grpc+rdma; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_collectives_grpc_rdma = benchmark_of("collectives", "grpc_rdma")
