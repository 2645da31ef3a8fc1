"""Both directions at once over grpc_shm; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_bidirectional_grpc_shm = benchmark_of("bidirectional", "grpc_shm")
