"""Incast to one receiver over mpi; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_incast_mpi = benchmark_of("incast", "mpi")
