"""Bandwidth of one direction over tcp_guests; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_bandwidth_tcp_guests = benchmark_of("bandwidth", "tcp_guests")
