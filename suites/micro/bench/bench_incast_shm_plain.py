"""Incast to one receiver over shm, plain buffers; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_incast_shm_plain = benchmark_of("incast", "shm_plain")
