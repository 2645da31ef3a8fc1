"""All collectives over grpc; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_collectives_grpc = benchmark_of("collectives", "grpc")
