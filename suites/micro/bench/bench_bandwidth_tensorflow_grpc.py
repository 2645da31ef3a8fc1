"""Bandwidth of one direction over tensorflow_grpc; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_bandwidth_tensorflow_grpc = benchmark_of("bandwidth", "tensorflow_grpc")
