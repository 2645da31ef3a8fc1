"""Message rate over grpc_shm, plain buffers; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_message_rate_grpc_shm_plain = benchmark_of("message_rate", "grpc_shm_plain")
