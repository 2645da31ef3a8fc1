"""Latency over tcp_100mbit; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_latency_tcp_100mbit = benchmark_of("latency", "tcp_100mbit")
