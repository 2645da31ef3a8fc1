"""Incast to one receiver over gloo; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_incast_gloo = benchmark_of("incast", "gloo")
