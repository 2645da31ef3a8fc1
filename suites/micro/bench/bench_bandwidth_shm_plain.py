"""Bandwidth of one direction over shm, plain buffers; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_bandwidth_shm_plain = benchmark_of("bandwidth", "shm_plain")
