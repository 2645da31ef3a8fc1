"""All collectives over tensorflow_mirrored; see ../README.md."""

from suites.micro.bench.launches import benchmark_of

test_collectives_tensorflow_mirrored = benchmark_of("collectives", "tensorflow_mirrored")
