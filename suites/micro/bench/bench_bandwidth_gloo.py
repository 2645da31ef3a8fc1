"""Bandwidth of one direction over gloo; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_bandwidth_gloo = benchmark_of("bandwidth", "gloo")
