"""All collectives over grpc_netns; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_collectives_grpc_netns = benchmark_of("collectives", "grpc_netns")
