"""Latency over gloo_netns; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_latency_gloo_netns = benchmark_of("latency", "gloo_netns")
