"""Latency over tensorflow_grpc; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_latency_tensorflow_grpc = benchmark_of("latency", "tensorflow_grpc")
