"""All collectives over tensorflow_grpc; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_collectives_tensorflow_grpc = benchmark_of("collectives", "tensorflow_grpc")
