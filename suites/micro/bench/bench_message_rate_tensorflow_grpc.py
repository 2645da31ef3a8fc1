"""Message rate over tensorflow_grpc; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_message_rate_tensorflow_grpc = benchmark_of("message_rate", "tensorflow_grpc")
