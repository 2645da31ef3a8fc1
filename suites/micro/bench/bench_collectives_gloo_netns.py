"""All collectives over gloo_netns; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_collectives_gloo_netns = benchmark_of("collectives", "gloo_netns")
