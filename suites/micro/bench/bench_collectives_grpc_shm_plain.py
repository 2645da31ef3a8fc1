"""All collectives over grpc_shm, plain buffers; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_collectives_grpc_shm_plain = benchmark_of("collectives", "grpc_shm_plain")
