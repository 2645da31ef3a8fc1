"""Bandwidth of one direction over ucx; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_bandwidth_ucx = benchmark_of("bandwidth", "ucx")
