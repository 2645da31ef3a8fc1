"""Latency over tcp_guests; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_latency_tcp_guests = benchmark_of("latency", "tcp_guests")
