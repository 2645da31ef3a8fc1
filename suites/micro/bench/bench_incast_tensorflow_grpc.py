"""Incast to one receiver over tensorflow_grpc; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_incast_tensorflow_grpc = benchmark_of("incast", "tensorflow_grpc")
