"""All collectives over grpc_shm; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_collectives_grpc_shm = benchmark_of("collectives", "grpc_shm")
