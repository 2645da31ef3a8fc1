"""Both directions at once over tensorflow_grpc; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_bidirectional_tensorflow_grpc = benchmark_of("bidirectional", "tensorflow_grpc")
