"""Incast to one receiver over shm; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_incast_shm = benchmark_of("incast", "shm")
