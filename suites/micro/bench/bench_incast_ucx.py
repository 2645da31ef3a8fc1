"""Incast to one receiver over ucx; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_incast_ucx = benchmark_of("incast", "ucx")
