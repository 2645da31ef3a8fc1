"""Bandwidth of one direction over mpi; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_bandwidth_mpi = benchmark_of("bandwidth", "mpi")
