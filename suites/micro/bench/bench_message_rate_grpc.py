"""Message rate over grpc; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_message_rate_grpc = benchmark_of("message_rate", "grpc")
