"""Incast to one receiver over tcp; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_incast_tcp = benchmark_of("incast", "tcp")
