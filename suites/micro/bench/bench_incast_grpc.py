"""Incast to one receiver over grpc; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_incast_grpc = benchmark_of("incast", "grpc")
