"""All collectives over nccl; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_collectives_nccl = benchmark_of("collectives", "nccl")
