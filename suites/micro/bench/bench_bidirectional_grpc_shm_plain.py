"""Both directions at once over grpc_shm, plain buffers; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_bidirectional_grpc_shm_plain = benchmark_of("bidirectional", "grpc_shm_plain")
