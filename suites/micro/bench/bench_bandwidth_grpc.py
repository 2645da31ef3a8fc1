"""Bandwidth of one direction over grpc; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_bandwidth_grpc = benchmark_of("bandwidth", "grpc")
