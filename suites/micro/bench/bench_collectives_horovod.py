"""All collectives over horovod; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_collectives_horovod = benchmark_of("collectives", "horovod")
