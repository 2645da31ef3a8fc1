"""Latency over grpc; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_latency_grpc = benchmark_of("latency", "grpc")
