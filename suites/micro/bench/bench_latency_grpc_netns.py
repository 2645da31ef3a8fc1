"""Latency over grpc_netns; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_latency_grpc_netns = benchmark_of("latency", "grpc_netns")
