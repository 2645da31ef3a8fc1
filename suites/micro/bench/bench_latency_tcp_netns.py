"""Latency over tcp_netns; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_latency_tcp_netns = benchmark_of("latency", "tcp_netns")
