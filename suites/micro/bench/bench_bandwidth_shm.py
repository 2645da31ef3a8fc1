"""Bandwidth of one direction over shm; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_bandwidth_shm = benchmark_of("bandwidth", "shm")
