"""Bandwidth of one direction over tcp; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_bandwidth_tcp = benchmark_of("bandwidth", "tcp")
