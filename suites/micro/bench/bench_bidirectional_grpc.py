"""Both directions at once over grpc; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_bidirectional_grpc = benchmark_of("bidirectional", "grpc")
